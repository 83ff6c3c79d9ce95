import { inspect } from 'node:util'
import test from 'ava'
import fc from 'fast-check'
import { parseTokenSet } from '#src/provider/client.js'
import { ProviderError } from '#src/provider/errors.js'
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

test('optional members of a token response may be absent or null, and unknown ones are ignored', t => {
  const absent = { accessToken: 'a', refreshToken: undefined, expiresIn: 1, scope: undefined, idToken: undefined }
  t.deepEqual(parseTokenSet({ access_token: 'a', expires_in: 1 }), absent)
  const nulls = { refresh_token: null, scope: null, id_token: null, token_type: null }
  t.deepEqual(parseTokenSet({ access_token: 'a', expires_in: 1, ...nulls }), absent)
  t.deepEqual(Object.keys(parseTokenSet({ ...whole, user: 'x', constructor: 'y' })).sort(), [
    'accessToken',
    'expiresIn',
    'idToken',
    'refreshToken',
    'scope'
  ])
})

test('token_type may be spelled in any case (RFC 6749 section 5.1), and scopes are separated by one or more spaces', t => {
  for (const token_type of ['bearer', 'BEARER', 'Bearer']) t.is(parseTokenSet({ ...whole, token_type }).expiresIn, 3599)
  t.deepEqual(parseTokenSet({ ...whole, scope: ' a  b ' }).scope, ['a', 'b'])
  t.deepEqual(parseTokenSet({ ...whole, scope: '' }).scope, [])
})

const refused: Readonly<Record<string, readonly unknown[]>> = {
  access_token: [
    undefined,
    null,
    '',
    5,
    true,
    [],
    {},
    ['a'],
    'line\nfeed',
    'carriage\rreturn',
    'NUL\0',
    'é',
    '\u{1f600}'
  ],
  refresh_token: ['', 5, false, [], {}, 'line\nfeed', 'é'],
  id_token: ['', 5, [], 'line\nfeed'],
  expires_in: [undefined, null, 0, -1, -0, Number.NaN, Infinity, -Infinity, 1e12, '3599', '', true, [], [3599], {}],
  token_type: ['', 'mac', 'DPoP', 'Bearer ', 5, [], ['Bearer'], {}],
  scope: [5, true, [], ['data:read'], {}]
}

for (const [member, values] of Object.entries(refused)) {
  for (const value of values) {
    test(`a token response whose ${member} is ${inspect(value)} is rejected, and the error names the member`, t => {
      const error = t.throws(() => parseTokenSet({ ...whole, [member]: value }), { instanceOf: ProviderError })
      t.is(error.problem, 'unusable')
      t.is(error.endpoint, 'token')
      t.true(error.message.includes(member))
      holdsNone(t, error, [whole.access_token, whole.refresh_token, whole.id_token])
    })
  }
}

for (const answer of [undefined, null, 5, 'text', true, [], [whole]]) {
  test(`a token response that is ${JSON.stringify(answer)?.slice(0, 20)} is rejected`, t => {
    t.throws(() => parseTokenSet(answer), { instanceOf: ProviderError, message: /not a JSON object/ })
  })
}

test('expires_in may be a fraction of a second, and at most ten years', t => {
  for (const expires_in of [0.5, 1, 315_360_000]) t.is(parseTokenSet({ ...whole, expires_in }).expiresIn, expires_in)
  t.throws(() => parseTokenSet({ ...whole, expires_in: 315_360_001 }), { instanceOf: ProviderError })
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
