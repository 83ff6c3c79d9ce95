import test from 'ava'
import { OAuthError, UpstreamError } from '#src/idp/errors.js'

test('an error of the protocol is told by its code, and says where it came from', t => {
  const error = new OAuthError({ error: 'invalid_grant', status: 400, endpoint: 'token', retryAfterSeconds: undefined })
  t.like(error, { name: 'OAuthError', error: 'invalid_grant', status: 400, endpoint: 'token' })
  t.is(error.message, "the identity provider's token endpoint answered 400 invalid_grant")
})

const statuses: readonly (readonly [status: number | undefined, isRefusal: boolean])[] = [
  [undefined, false],
  [200, false],
  [302, false],
  [400, true],
  [401, true],
  [403, true],
  [404, true],
  [408, false],
  [429, false],
  [499, true],
  [500, false],
  [503, false]
]

for (const [status, isRefusal] of statuses) {
  test(`an answer of ${status ?? 'no status'} is ${isRefusal ? 'a refusal' : 'no refusal'}`, t => {
    const parts = status === undefined ? {} : { status }
    t.is(new UpstreamError('token', 'unusable', 'it answered', parts).isRefusal, isRefusal)
  })
}
