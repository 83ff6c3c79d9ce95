import test from 'ava'
import { ProviderError } from '#src/provider/errors.js'

const statuses: readonly (readonly [status: number | undefined, isRejection: boolean])[] = [
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

for (const [status, isRejection] of statuses) {
  test(`an unusable response with the status ${status ?? 'undefined'} ${isRejection ? 'counts' : 'does not count'} as a refusal`, t => {
    const parts = status === undefined ? {} : { status }
    t.is(new ProviderError('token', 'invalid_response', 'a test', parts).isRejection, isRejection)
  })
}

const busy: readonly (readonly [what: string, error: ProviderError, isThrottled: boolean])[] = [
  ['a 429', new ProviderError('token', 'invalid_response', '', { status: 429 }), true],
  [
    'a 503 with Retry-After',
    new ProviderError('token', 'invalid_response', '', { status: 503, retryAfterSeconds: 0 }),
    true
  ],
  ['a 503 without Retry-After', new ProviderError('token', 'invalid_response', '', { status: 503 }), false],
  [
    'a 500 with Retry-After',
    new ProviderError('token', 'invalid_response', '', { status: 500, retryAfterSeconds: 1 }),
    false
  ],
  ['a call that was not made', new ProviderError('token', 'queue_full', ''), true],
  ['a timeout', new ProviderError('token', 'timeout', ''), false],
  ['no connection', new ProviderError('token', 'unreachable', ''), false]
]

for (const [what, error, isThrottled] of busy) {
  test(`${what} ${isThrottled ? 'means' : 'does not mean'} that the same call may succeed later`, t => {
    t.is(error.isThrottled, isThrottled)
  })
}
