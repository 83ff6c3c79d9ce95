import test from 'ava'
import fc from 'fast-check'
import { UpstreamError } from '#src/idp/errors.js'
import { checkIdToken, type ExpectedClaims } from '#src/idp/id-token.js'
import { holdsNone } from './secrets.js'

const NOW = 1_700_000_000_000
const NOW_SECONDS = NOW / 1000
const issuer = 'https://idp.example'
const expected: ExpectedClaims = { nonce: 'the-nonce', clientId: 'our-client', issuer, now: NOW }
const good = { iss: issuer, aud: 'our-client', nonce: 'the-nonce', exp: NOW_SECONDS + 3600, sub: 'somebody' }

function jwt(claims: unknown): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'RS256' })}.${part(claims)}.signature`
}

const accepted: readonly (readonly [what: string, claims: object, expected?: Partial<ExpectedClaims>])[] = [
  ['of this login', {}],
  ['with a list of one audience', { aud: ['our-client'] }],
  ['with several audiences and us as the authorized party', { aud: ['our-client', 'other'], azp: 'our-client' }],
  ['that ended four minutes ago, clocks being what they are', { exp: NOW_SECONDS - 240 }],
  ['of any issuer where none is known', { iss: 'https://other.example' }, { issuer: undefined }]
]

for (const [what, claims, more] of accepted) {
  test(`an ID token ${what} is accepted`, t => {
    t.notThrows(() => checkIdToken(jwt({ ...good, ...claims }), { ...expected, ...more }))
  })
}

const refused: readonly (readonly [what: string, claims: object, why: RegExp])[] = [
  ['of another login', { nonce: 'other-nonce' }, /nonce/],
  ['without a nonce', { nonce: undefined }, /nonce/],
  ['with a list of nonces', { nonce: ['the-nonce'] }, /nonce/],
  ['of another issuer', { iss: 'https://evil.example' }, /iss/],
  ['of the same issuer with a slash', { iss: `${issuer}/` }, /iss/],
  ['without an issuer', { iss: undefined }, /iss/],
  ['for another client', { aud: 'other' }, /aud/],
  ['for a client of a longer name', { aud: 'our-client-2' }, /aud/],
  ['for other clients', { aud: ['other', 'another'] }, /aud/],
  ['without an audience', { aud: undefined }, /aud/],
  ['with several audiences and no authorized party', { aud: ['our-client', 'other'] }, /azp/],
  ['with several audiences and another party', { aud: ['our-client', 'other'], azp: 'other' }, /azp/],
  ['that ended more than five minutes ago', { exp: NOW_SECONDS - 301 }, /expired/],
  ['without an end', { exp: undefined }, /expired/],
  ['whose end is a text', { exp: String(NOW_SECONDS + 3600) }, /expired/],
  ['whose end is no number', { exp: null }, /expired/]
]

for (const [what, claims, why] of refused) {
  test(`an ID token ${what} is refused`, t => {
    const error = t.throws(() => checkIdToken(jwt({ ...good, ...claims }), expected), { instanceOf: UpstreamError })
    t.is(error.problem, 'unusable')
    t.is(error.endpoint, 'token')
    t.regex(error.message, why)
    holdsNone(t, error, ['the-nonce', 'other-nonce', 'somebody', jwt({ ...good, ...claims })])
  })
}

test('the leeway ends after five minutes, to the second', t => {
  t.notThrows(() => checkIdToken(jwt({ ...good, exp: NOW_SECONDS - 300 }), expected))
  t.throws(() => checkIdToken(jwt({ ...good, exp: NOW_SECONDS - 300 }), { ...expected, now: NOW + 1 }))
})

const noJwt = [
  '',
  'text',
  'a.b',
  'a.b.c',
  '..',
  `${jwt(good)}.more`,
  jwt(good).replace('.', ''),
  jwt(null),
  jwt('text'),
  jwt(5),
  jwt([])
]

for (const text of noJwt) {
  test(`"${text.slice(0, 24)}…" is no ID token`, t => {
    t.throws(() => checkIdToken(text, expected), { instanceOf: UpstreamError, message: /not a JWT/ })
  })
}

test('any text and any claims are refused with our own error', t => {
  const texts = fc.oneof(fc.string(), fc.jsonValue().map(jwt))
  fc.assert(
    fc.property(texts, text => {
      try {
        checkIdToken(text, expected)
        return false
      } catch (error) {
        return error instanceof UpstreamError
      }
    })
  )
  t.pass()
})
