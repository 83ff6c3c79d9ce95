import { inspect } from 'node:util'
import test from 'ava'
import fc from 'fast-check'
import { ProviderError } from '#src/provider/provider-error.js'
import { parseTokenSet } from '#src/provider/token-set.js'
import { jwt } from '../helpers/jwt.js'
import { holdsNone } from './secrets.js'

const whole = {
  access_token: 'an-access-token',
  refresh_token: 'a-refresh-token',
  token_type: 'Bearer',
  expires_in: 3599,
  scope: 'data:read viewables:read',
  id_token: 'an.id.token'
}

test('a complete token response becomes a token set with camelCase names', t => {
  t.deepEqual(parseTokenSet(whole), {
    accessToken: 'an-access-token',
    refreshToken: 'a-refresh-token',
    expiresIn: 3599,
    scope: ['data:read', 'viewables:read'],
    idToken: 'an.id.token'
  })
})

test('optional members of a token response may be absent, null or empty, and unknown ones are ignored', t => {
  const absent = { accessToken: 'a', refreshToken: undefined, expiresIn: 3600, scope: undefined, idToken: undefined }
  for (const none of [undefined, null, '']) {
    const members = { refresh_token: none, expires_in: none, scope: none, id_token: none, token_type: none }
    t.deepEqual(parseTokenSet({ access_token: 'a', ...members }), absent)
  }
  t.deepEqual(parseTokenSet({ ...whole, user: 'x', constructor: 'y' }), parseTokenSet(whole))
})

const at = Date.parse('Fri, 27 Nov 2026 10:00:00 GMT')
const seconds = at / 1000
// The members of a response that deviate from RFC 6749 section 5.1, and what they mean.
const tolerated: readonly (readonly [what: string, members: Record<string, unknown>, read: object, date?: number])[] = [
  ...['bearer', 'BEARER', 'BearerToken'].map(token_type => [token_type, { token_type }, { expiresIn: 3599 }] as const),
  ['digits', { expires_in: '3599' }, { expiresIn: 3599 }],
  ['digits and white space', { expires_in: ' 1800 ' }, { expiresIn: 1800 }],
  ['no expires_in and an opaque token', { expires_in: undefined }, { expiresIn: 3600 }],
  ['exp and Date', { expires_in: null, access_token: jwt({ exp: seconds + 900, iat: 5 }) }, { expiresIn: 900 }, at],
  ['exp and iat', { expires_in: null, access_token: jwt({ exp: seconds, iat: seconds - 60 }) }, { expiresIn: 60 }],
  ['exp alone', { expires_in: undefined, access_token: jwt({ exp: seconds }) }, { expiresIn: 3600 }],
  ['exp in the past', { expires_in: undefined, access_token: jwt({ exp: seconds - 1 }) }, { expiresIn: 3600 }, at],
  ['exp as a string', { expires_in: undefined, access_token: jwt({ exp: '9999999999' }) }, { expiresIn: 3600 }, at],
  ['exp after centuries', { expires_in: undefined, access_token: jwt({ exp: 1e15 }) }, { expiresIn: 3600 }, at],
  ['spaces', { scope: ' a  b ' }, { scope: ['a', 'b'] }],
  ['a list', { scope: ['a', 'b c'] }, { scope: ['a', 'b', 'c'] }]
]

for (const [what, members, read, date] of tolerated) {
  test(`a token response may have other forms: ${what}`, t => {
    t.like(parseTokenSet({ ...whole, ...members }, date), read)
  })
}

const refused: Readonly<Record<string, readonly unknown[]>> = {
  access_token: [undefined, null, '', 5, true, ['a'], {}, 'line\nfeed', 'carriage\rreturn', 'NUL\0', 'é', '\u{1f600}'],
  refresh_token: [5, false, [], {}, 'line\nfeed', 'é'],
  id_token: [5, [], 'line\nfeed'],
  expires_in: [0, -1, Number.NaN, Infinity, 315_360_001, '0', '-1', '1e3', ' ', '6 0', '9999999999', true, [3599], {}],
  token_type: ['mac', 'DPoP', 'Bearer ', 5, ['Bearer'], {}],
  scope: [5, true, [5], ['data:read', null], {}]
}

for (const [member, values] of Object.entries(refused)) {
  for (const value of values) {
    test(`a token response whose ${member} is ${inspect(value)} is rejected, and the error names the member`, t => {
      const error = t.throws(() => parseTokenSet({ ...whole, [member]: value }), { instanceOf: ProviderError })
      t.is(error.problem, 'invalid_response')
      t.is(error.endpoint, 'token')
      t.true(error.message.includes(member))
      holdsNone(t, error, [whole.access_token, whole.refresh_token, whole.id_token])
    })
  }
}

test('a token response that is no JSON object is rejected', t => {
  for (const answer of [undefined, null, 5, 'text', true, [], [whole]]) {
    t.throws(() => parseTokenSet(answer), { instanceOf: ProviderError, message: /not a JSON object/ })
  }
})

test('expires_in may be a fraction of a second, and at most ten years', t => {
  for (const expires_in of [0.5, 1, 315_360_000]) t.is(parseTokenSet({ ...whole, expires_in }).expiresIn, expires_in)
})

test('any JSON value is either parsed as a usable token set or rejected with an ProviderError', t => {
  const member = fc.oneof(fc.jsonValue(), fc.string(), fc.integer())
  const answers = fc.oneof(
    fc.jsonValue(),
    fc.record(
      { access_token: member, refresh_token: member, expires_in: member, token_type: member, scope: member },
      { requiredKeys: [] }
    )
  )
  fc.assert(
    fc.property(answers, answer => {
      try {
        const { accessToken, expiresIn } = parseTokenSet(answer)
        return typeof accessToken === 'string' && accessToken.length > 0 && Number.isFinite(expiresIn) && expiresIn > 0
      } catch (error) {
        return error instanceof ProviderError
      }
    }),
    { numRuns: 1000 }
  )
  t.pass()
})
