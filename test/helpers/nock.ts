// The only module that imports nock. Importing it blocks all network access of a test file except loopback. nock has
// one list of expected requests for the whole worker, and AVA runs the tests of a file in parallel. Each test therefore
// gets its own host, so that no test receives the response meant for another. A test that needs a fixed host belongs in
// `test.serial`. nock replaces `http.request` and fetch(). It does not see calls of a function that was imported by
// name, `{ request }`.
import type { ExecutionContext } from 'ava'
import nock from 'nock'

nock.disableNetConnect()
nock.enableNetConnect(/^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/)

let hosts = 0

export type MockedHost = ReturnType<typeof mockHost>

export function mockHost(t: Pick<ExecutionContext, 'teardown'>) {
  hosts += 1
  // No other test has the same origin.
  const origin = `https://idp-${hosts}.example`
  const scope = nock(origin)
  /** Throws unless every expected request was sent. It also runs at the end of the test. */
  const assertAllCame = () => {
    const missing = scope.pendingMocks()
    if (missing.length > 0) throw new Error(`These expected requests never came: ${missing.join(', ')}`)
  }
  t.teardown(assertAllCame)
  return { origin, scope, assertAllCame }
}

/** Ends the responses that nock still delays, in all tests of the file. Their timers would keep its process running. */
export const { abortPendingRequests } = nock

export type { Scope } from 'nock'
