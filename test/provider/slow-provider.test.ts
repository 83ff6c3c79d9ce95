// Requests arrive faster than the provider responds. The transport limits the number of simultaneous calls and the length
// of each queue. test/web/slow-provider.test.ts shows that code exchanges do not delay refreshes.
import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { ProviderError } from '#src/provider/provider-error.js'
import { createTransport } from '#src/provider/transport.js'
import { eventually } from '../helpers/eventually.js'
import { startUpstream } from '../helpers/upstream.js'

const limits = { inProgress: 2, waiting: 3 }

/** Starts a provider that holds back its responses, and a client that calls it. */
async function startSlowProvider(t: ExecutionContext) {
  const held: ServerResponse[] = []
  const { origin: url } = await startUpstream(t, (_request, response) => void held.push(response))
  const transport = createTransport(60_000, { limits })
  t.teardown(() => transport.close())
  const call = (timeoutMs?: number) => transport.call({ endpoint: 'revocation', url, form: { a: 'b' }, timeoutMs })
  return { held, call }
}

test('the time that a call waits in the queue counts toward its time limit', async t => {
  const { held, call } = await startSlowProvider(t)
  const calls = [call(), call()]
  await eventually(() => held.length === limits.inProgress)
  const waited = t.throwsAsync(call(2000), { instanceOf: ProviderError })
  await pause(600)
  held[0]?.end('{}')
  // A response that arrives 100 ms late is still used. If the time limit began after the wait, it would end after this timer, even on a machine that is slow.
  const wholeLimit = pause(2000, { problem: 'the time limit did not include the wait in the queue' })
  t.like(await Promise.race([waited, wholeLimit]), { problem: 'timeout' })
  t.is(held.length, 3, 'the call was sent')
  held[1]?.end('{}')
  await Promise.all(calls)
})
