import test from 'ava'
import fc from 'fast-check'
import { coversPattern, fillPattern, matchPattern, parsePattern, whyNotExact } from '#src/config/types/path-pattern.js'
import { assertCases } from '../helpers/case-file.js'

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

test('a path is exact if all servers interpret it in the same way', t =>
  assertCases(t, 'test/config/paths.txt', path => whyNotExact(JSON.parse(`"${path}"`)) ?? 'exact'))

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
