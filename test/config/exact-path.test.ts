import test from 'ava'
import fc from 'fast-check'
import { whyNotExact } from '#src/config/exact-path.js'

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
  '/a/%C1%9C'
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
  '/a%23',
  '/urn:adsk.wipprod:dm.lineage:x',
  "/b.a+b=,!$&'()*@~_-",
  '/a|b[c]'
]
for (const path of exact) {
  test(`the path ${JSON.stringify(path)} is accepted as exact`, t => t.is(whyNotExact(path), undefined))
}

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
