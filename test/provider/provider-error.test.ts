import test from 'ava'
import { ProviderError } from '#src/provider/provider-error.js'

test('an unusable response counts as a refusal if its status says that the same request would fail again', t => {
  const isRejection = (status?: number) =>
    new ProviderError('token', 'invalid_response', '', status === undefined ? {} : { status }).isRejection
  for (const status of [400, 401, 403, 404, 499]) t.true(isRejection(status), String(status))
  for (const status of [undefined, 200, 302, 408, 429, 500, 503]) t.false(isRejection(status), String(status))
})

test('a call that was not processed may succeed later', t => {
  const response = (status: number, retryAfterSeconds?: number) =>
    new ProviderError('token', 'invalid_response', '', {
      status,
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds })
    })
  for (const error of [response(429), response(503, 0), new ProviderError('token', 'queue_full', '')]) {
    t.true(error.isThrottled)
  }
  const timeout = new ProviderError('token', 'timeout', '')
  const noConnection = new ProviderError('token', 'unreachable', '')
  for (const error of [response(503), response(500, 1), timeout, noConnection]) t.false(error.isThrottled)
})
