import test from 'ava'
import fc from 'fast-check'
import { whyNotExact } from '#src/config/path-pattern.js'
import { cpuMsOf } from '../helpers/cpu-time.js'

const inexact = [
  '/a/../b',
  '/a/..',
  '/..',
  '/a/./b',
  '/.',
  '/a/%2e%2e/b',
  '/a/%2E%2E',
  '/a/.%2E/b',
  '/a/%2e./b',
  '/a/%2e/b',
  '/a%2fb',
  '/a%2Fb',
  '/a%5cb',
  '/a%5Cb',
  '/a\\b',
  '/a\\..\\b',
  '//a',
  '/a//b',
  '/a//',
  '/a%00',
  '/a%09b',
  '/a%0ab',
  '/a%0d%0ab',
  '/a%1f',
  '/a%7f',
  '/a\x7f',
  '/a\x01',
  '/a b',
  '/\xfc',
  '/a\u00e4',
  '/a#b',
  '/a%',
  '/a%2',
  '/a%zz',
  '/a%u0041',
  '/a/..;/b',
  '/a/..;x=1/b',
  '/a/.;/b',
  '/a/%2e%2e;x',
  '/a/..%3bx',
  '/a/..%3B/b',
  '/a/%252e%252E/b',
  '/a/%25252e./b',
  '/a/..%253b',
  '/a/%c0%ae%c0%ae/b',
  '/a/%C1%9C',
  '/a/..%252fadmin',
  '/a/..%25252Fadmin',
  '/a/..%255c',
  '/a/..%255cadmin',
  '/a/b%252fc',
  '/a/b%25255Cc',
  '/a/%252e%2525252e/b',
  '/a/%2525252525252e./b',
  '/a/%e0%80%ae%e0%80%ae/b',
  '/a/%E0%9F%BF',
  '/a/%f0%80%80%ae/b',
  '/a/%f8%80%80%80%ae/b',
  '/a/%fc%80%80%80%80%af',
  '/a/%25c0%25ae/b',
  '/a/%e0%2580%25ae/b',
  '/a/%EF%BC%8E%EF%BC%8E/b',
  '/a/.%EF%BC%8E/b',
  '/a/%E2%80%A4%E2%80%A4/b',
  '/a/%E2%80%A5/b',
  '/a/%25EF%25BC%258E./b',
  '/a/b%EF%BC%8Fc',
  '/a/b%EF%BC%BCc',
  '/a/..%20',
  '/a/..%20/b',
  '/a/.%20./b',
  '/a/%20../b',
  '/a/..%20./b',
  '/a/..%2520/b',
  '/a/..%C2%A0/b',
  '/a/..%E2%80%8B/b',
  '/a/..%2500/b',
  '/a/..%20;x/b',
  '/a/..%3f',
  '/a/..%23/b',
  '/a/..%253Fx'
]
for (const path of inexact) {
  test(`the path ${JSON.stringify(path)} is refused as not exact`, t => t.is(typeof whyNotExact(path), 'string'))
}

const exact = [
  '/a',
  '/a/',
  '/a/b.c',
  '/...',
  '/a/..b',
  '/a/b..',
  '/a/.well-known',
  '/a;b',
  '/a/b;c=..',
  '/%20',
  '/%C3%BC',
  '/a%25',
  '/a%252e',
  '/a%3f',
  '/a%2525',
  '/a%2500',
  '/100%25',
  '/100%25%20done',
  '/100%2520done',
  '/50%25of100%25',
  '/a%25zz',
  '/name%20with%20spaces.pdf',
  '/%20a%20',
  '/a.%20b',
  '/v1.%20.2',
  '/a..%20',
  '/Z%C3%BCrich',
  '/%E6%9D%B1%E4%BA%AC/%E5%9B%B3%E9%9D%A2.rvt',
  '/%D0%A1%D1%85%D0%B5%D0%BC%D0%B0',
  '/a%CC%88',
  '/%F0%9F%98%80',
  '/v1%EF%BC%8E2',
  '/wait%E2%80%A6',
  '/%E2%80%A6',
  '/%FCber',
  '/a%23',
  '/urn:adsk.wipprod:dm.lineage:x',
  "/b.a+b=,!$&'()*@~_-",
  '/a|b[c]'
]
for (const path of exact) {
  test(`the path ${JSON.stringify(path)} is accepted as exact`, t => t.is(whyNotExact(path), undefined))
}

test('a path of thousands of nested escapes is refused within a few milliseconds', t => {
  const path = `/a/%${'25'.repeat(15_000)}2e`
  t.true(cpuMsOf(() => t.is(typeof whyNotExact(path), 'string')) < 250)
})

test('the WHATWG URL parser, which browsers and upstreams use, does not change an exact path', t => {
  const piece = fc.constantFrom('a', '.', '/', '%2e', '%2F', '%', '2', '\\', ';', '%41', '#', '\u00fc', '|')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), pieces => {
      const path = `/${pieces.join('')}`
      return whyNotExact(path) !== undefined || new URL(path, 'http://h').pathname === path
    }),
    { numRuns: 10_000 }
  )
  t.pass()
})
