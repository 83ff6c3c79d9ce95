import test from 'ava'
import fc from 'fast-check'
import { coversPattern, fillPattern, matchPattern, parsePattern, whyNotExact } from '#src/config/types/path-pattern.js'

// Patterns are compared with a regular expression that is made from the same text.
const literal = fc.constantFrom('a', 'b', 'A', 'ab', '%20', 'a.b', 'x-1')
const segment = fc.oneof({ weight: 2, arbitrary: literal }, { weight: 1, arbitrary: fc.constant('*') })
const pattern = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '/', '/**'))
  .map(([segments, end]) => `/${segments.join('/')}${end}`)
const path = fc
  .tuple(fc.array(literal, { minLength: 1, maxLength: 6 }), fc.constantFrom('', '/'))
  .map(([segments, end]) => `/${segments.join('/')}${end}`)

function plainReading(pattern: string): RegExp {
  const source = pattern
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/\/\*\*$/, '(/.*)?')
    .replace(/(?<=\/)\*(?=\/|\(|$)/g, '[^/]+')
  return new RegExp(`^${source}$`)
}

const match = (text: string, path: string) => matchPattern(parsePattern(text), path.slice(1).split('/'))

/** Returns a path that the pattern matches: its wildcards are replaced by `words` and `rest`. */
function pathOf(text: string, words: readonly string[], rest: string): string {
  let next = 0
  const filled = text.replace(/\/\*\*$/, rest).replace(/(?<=\/)\*(?=\/|$)/g, () => words[next++] ?? 'w')
  return filled
}
const matching = (text: string) =>
  fc
    .tuple(fc.array(literal, { minLength: 5, maxLength: 5 }), fc.constantFrom('', '/', '/a', '/a/', '/a/b'))
    .map(([words, rest]) => pathOf(text, words, rest))

test('a pattern matches the same paths as its regular expression', t => {
  fc.assert(
    fc.property(pattern, path, (text, path) => (match(text, path) !== undefined) === plainReading(text).test(path)),
    {
      numRuns: 5000
    }
  )
  fc.assert(
    fc.property(
      pattern.chain(text => fc.tuple(fc.constant(text), matching(text))),
      ([text, path]) => match(text, path) !== undefined && plainReading(text).test(path)
    ),
    { numRuns: 2000 }
  )
  t.pass()
})

test('filling a pattern with the parts captured from a path gives the same path', t => {
  fc.assert(
    fc.property(
      pattern.chain(text => fc.tuple(fc.constant(text), matching(text))),
      ([text, path]) => {
        const captured = match(text, path)
        return captured !== undefined && fillPattern(parsePattern(text), captured) === path
      }
    ),
    { numRuns: 2000 }
  )
  t.pass()
})

test('a pattern that covers another pattern matches all paths of the other', t => {
  fc.assert(
    fc.property(
      pattern,
      pattern.chain(text => fc.tuple(fc.constant(text), matching(text))),
      (text, [other, path]) =>
        !coversPattern(parsePattern(text), parsePattern(other)) || match(text, path) !== undefined
    ),
    { numRuns: 5000 }
  )
  t.pass()
})

test('the part matched by ** keeps its trailing slash, and an empty target path becomes /', t => {
  const target = parsePattern('/v1/hubs/**')
  const filled = ['/api/hubs', '/api/hubs/', '/api/hubs/b.1/projects/'].map(path => {
    const captured = match('/api/hubs/**', path)
    return captured && fillPattern(target, captured)
  })
  t.deepEqual(filled, ['/v1/hubs', '/v1/hubs/', '/v1/hubs/b.1/projects/'])
  t.is(fillPattern(parsePattern('/**'), { segments: [], rest: '' }), '/')
  t.is(fillPattern(parsePattern('/'), { segments: [], rest: '' }), '/')
})

// The paths of each row are separated by spaces.
const inexact = [
  ['a dot segment', '/a/../b /a/.. /.. /a/./b /.'],
  ['an encoded dot segment', '/a/%2e%2e/b /a/%2E%2E /a/.%2E/b /a/%2e./b /a/%2e/b'],
  ['a dot segment with a path parameter', '/a/..;/b /a/..;x=1/b /a/.;/b /a/%2e%2e;x /a/..%3bx /a/..%3B/b'],
  ['a dot segment with a query or fragment after decoding', '/a/..%3f /a/..%23/b /a/..%253Fx'],
  ['a dot segment that is encoded more than once', '/a/%252e%252E/b /a/%25252e./b /a/..%253b /a/%252e%2525252e/b'],
  ['a dot segment that is encoded many times', '/a/%2525252525252e./b'],
  ['an encoded slash or backslash', '/a%2fb /a%2Fb /a%5cb /a%5Cb'],
  ['a backslash', '/a\\b /a\\..\\b'],
  [
    'a slash or backslash that is encoded more than once',
    '/a/..%252fadmin /a/..%25252Fadmin /a/..%255c /a/..%255cadmin'
  ],
  ['another slash or backslash of this kind', '/a/b%252fc /a/b%25255Cc'],
  ['an empty segment', '//a /a//b /a//'],
  ['an encoded control character', '/a%00 /a%09b /a%0ab /a%0d%0ab /a%1f /a%7f'],
  ['a character that must be encoded', '/a\x7f /a\x01 /\xfc /a\u00e4 /a#b'],
  ['a broken escape', '/a% /a%2 /a%zz /a%u0041'],
  ['an overlong sequence of two bytes', '/a/%c0%ae%c0%ae/b /a/%C1%9C /a/%25c0%25ae/b'],
  ['an overlong sequence of three bytes', '/a/%e0%80%ae%e0%80%ae/b /a/%E0%9F%BF /a/%e0%2580%25ae/b'],
  ['a longer overlong sequence', '/a/%f0%80%80%ae/b /a/%f8%80%80%80%ae/b /a/%fc%80%80%80%80%af'],
  [
    'a character that looks like dots',
    '/a/%EF%BC%8E%EF%BC%8E/b /a/.%EF%BC%8E/b /a/%E2%80%A4%E2%80%A4/b /a/%E2%80%A5/b'
  ],
  ['an encoded character that looks like a dot', '/a/%25EF%25BC%258E./b'],
  ['a character that looks like a slash or backslash', '/a/b%EF%BC%8Fc /a/b%EF%BC%BCc'],
  ['white space next to dots', '/a/..%20 /a/..%20/b /a/.%20./b /a/%20../b /a/..%20./b /a/..%2520/b /a/..%20;x/b'],
  ['an invisible character next to dots', '/a/..%C2%A0/b /a/..%E2%80%8B/b /a/..%2500/b']
] as const
for (const [what, paths] of inexact) {
  test(`a path with ${what} is not exact`, t => {
    for (const path of paths.split(' ')) t.is(typeof whyNotExact(path), 'string', path)
  })
}

test('a path with a space is not exact', t => t.is(typeof whyNotExact('/a b'), 'string'))

const exact = [
  ['ordinary characters', "/a /a/ /a/b.c /urn:adsk.wipprod:dm.lineage:x /b.a+b=,!$&'()*@~_- /a|b[c]"],
  ['dots that are no dot segment', '/... /a/..b /a/b.. /a/.well-known /a/b;c=.. /a.%20b /v1.%20.2 /a..%20'],
  ['a path parameter', '/a;b'],
  ['encoded characters', '/%20 /%C3%BC /a%3f /a%23 /name%20with%20spaces.pdf /%20a%20 /%FCber'],
  [
    'encoded percent signs',
    '/a%25 /a%252e /a%2525 /a%2500 /100%25 /100%25%20done /100%2520done /50%25of100%25 /a%25zz'
  ],
  [
    'words of other languages',
    '/Z%C3%BCrich /%E6%9D%B1%E4%BA%AC/%E5%9B%B3%E9%9D%A2.rvt /%D0%A1%D1%85%D0%B5%D0%BC%D0%B0'
  ],
  ['combining characters and symbols', '/a%CC%88 /%F0%9F%98%80 /v1%EF%BC%8E2 /wait%E2%80%A6 /%E2%80%A6']
] as const
for (const [what, paths] of exact) {
  test(`a path with ${what} is exact`, t => {
    for (const path of paths.split(' ')) t.is(whyNotExact(path), undefined, path)
  })
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
