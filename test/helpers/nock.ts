// The one place that knows nock. Importing it closes the network of this test file except loopback.
//
// nock's list of expectations is one for the whole worker, and AVA runs the tests of a file side by side. So each test gets a host of
// its own here, and they cannot take each other's answers; a test that must use a fixed host belongs in `test.serial`.
// nock sees who calls `http.request` or fetch(); a function imported by its name, `{ request }`, goes past it.
import type { ExecutionContext } from 'ava'
import nock from 'nock'

nock.disableNetConnect()
nock.enableNetConnect(/^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/)

let hosts = 0

export interface MockedHost {
  /** Like https://idp-7.example, and nobody else's. */
  readonly origin: string
  readonly scope: nock.Scope
  /** Throws unless every expected request came; the end of the test does this by itself. */
  assertAllCame(): void
}

export function mockHost(t: Pick<ExecutionContext, 'teardown'>): MockedHost {
  hosts += 1
  const origin = `https://idp-${hosts}.example`
  const scope = nock(origin)
  const assertAllCame = () => {
    const missing = scope.pendingMocks()
    if (missing.length > 0) throw new Error(`These expected requests never came: ${missing.join(', ')}`)
  }
  t.teardown(assertAllCame)
  return { origin, scope, assertAllCame }
}

export type { Scope } from 'nock'
