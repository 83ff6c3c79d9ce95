import test from 'ava'
import fc from 'fast-check'
import { safeReturnTo } from '#src/login/safe-return-to.js'
import { anyText } from '../helpers/any-text.js'
import { assertCases } from '../helpers/case-file.js'
import { returnPaths } from '../helpers/return-paths.js'

const [path, query, fragment] = [`/${'p'.repeat(1000)}`, `?${'q'.repeat(1000)}`, `#${'f'.repeat(100)}`]

/** Returns the path to which a login returns, and says so if the caller learns that it is another one. */
function resultOf(given: string): string {
  let isChanged = false
  const result = safeReturnTo(given, () => {
    isChanged = true
  })
  return isChanged ? `changed to ${result}` : result
}

test('a safe path of this origin is accepted, and any other value is replaced by the start page', async t => {
  await assertCases(t, 'test/login/return-paths.txt', input => resultOf(JSON.parse(input)))
  for (const path of [...returnPaths, `/${'x'.repeat(2047)}`, `/x?${'\\'.repeat(1022)}`]) t.is(resultOf(path), path)
})

for (const [given, expected] of [
  [path + query + fragment, path + query],
  [`${path}?${'ü'.repeat(200)}#f`, path],
  [`${path}#${'f'.repeat(2000)}?q`, path],
  [`/x?${'\\'.repeat(1023)}`, '/x'],
  [`/page?${'"'.repeat(700)}`, '/page'],
  [`/${'x'.repeat(2048)}?a#b`, '/'],
  [`/${'ü'.repeat(342)}`, '/'],
  [`//evil.example?${'x'.repeat(2048)}`, '/'],
  [`/\\evil#${'x'.repeat(2048)}`, '/']
] as const) {
  test(`what is too long loses its fragment, then its query: ${given.slice(0, 12)}, ${given.length} characters`, t => {
    t.is(resultOf(given), `changed to ${expected}`)
    t.is(resultOf(expected), expected)
  })
}

// Typical parts of attacks on redirects.
const pieces = fc.constantFrom(
  ...['/', '\\', '//', '..', '.', '@', ':', '?', '#', '%2f', '%5C', '%2e', '%09', '%0d%0a', '%00', '%25', '%E2%81%84'],
  ...['%252f', '%25252e', '2e', '2F', '/api', '/auth', 'api', 'auth', ';x', 'ü', '%3f', '%23', '"'],
  ...['\t', '\n', '\r', ' ', '\0', '\u2028', '\ufeff', '；', 'https:', 'javascript:', 'evil.example', 'localhost', 'a']
)
const attacks = fc.array(pieces, { maxLength: 10 }).map(parts => parts.join(''))
const anything = fc.oneof(
  attacks,
  attacks.map(text => `/${text}`),
  anyText({ maxLength: 100 }),
  fc.webUrl({ withFragments: true, withQueryParameters: true }),
  fc.webPath()
)

test('a URL parser resolves every accepted value to this origin and outside the routes of this server, also after up to three decodings', t => {
  const origins = ['https://app.example', 'http://localhost:8080', 'https://app.example:8443/base/api/auth/callback']
  fc.assert(
    fc.property(anything, value => {
      const accepted = safeReturnTo(value)
      if (accepted !== '/' && decodeOnce(accepted) !== decodeOnce(value)) return false
      if (!/^\/(?![/\\])[!#-~]*$/.test(accepted)) return false
      const [path = ''] = accepted.split(/[?#]/)
      const readings = [accepted, path]
      for (let decoding = 0; decoding < 3; decoding += 1) readings.push(decodeOnce(readings.at(-1) as string))
      return origins.every(base => readings.every(reading => isHarmless(reading, base)))
    }),
    { numRuns: 5000 }
  )
  t.pass()
})

function isHarmless(reading: string, base: string): boolean {
  const { origin, username, password, pathname } = new URL(reading, base)
  const merged = pathname.replace(/\/+/g, '/').toLowerCase()
  return origin === new URL(base).origin && username === '' && password === '' && !/\/api\/auth(\/|$)/.test(merged)
}

function decodeOnce(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, escapes => Buffer.from(escapes.replaceAll('%', ''), 'hex').toString())
}
