// Requests arrive faster than the provider responds. The transport limits the number of simultaneous calls and the length
// of each queue. test/web/slow-provider.test.ts shows that code exchanges do not delay refreshes.
import type { ServerResponse } from 'node:http'
import test from 'ava'
import { ProviderError } from '#src/provider/provider-error.js'
import { createTransport } from '#src/provider/transport.js'
import { createClock } from '../helpers/clock.js'
import { eventually } from '../helpers/eventually.js'
import { startUpstream } from '../helpers/upstream.js'

const limits = { inProgress: 2, waiting: 3 }

test('the time that a call waits in the queue counts toward its time limit', async t => {
  const held: ServerResponse[] = []
  const { origin: url } = await startUpstream(t, (_request, response) => void held.push(response))
  const clock = createClock()
  const transport = createTransport(60_000, { limits, clock })
  t.teardown(() => transport.close())
  const call = () => transport.call({ endpoint: 'revocation', url, form: { a: 'b' } })
  const calls = [call(), call()]
  await eventually(() => held.length === limits.inProgress)
  const waited = t.throwsAsync(call(), { instanceOf: ProviderError })
  clock.advance(59_000)
  for (const response of held) response.end('{}')
  await Promise.all(calls)
  await eventually(() => held.length === 3)
  t.deepEqual(clock.timers(), [1000])
  // A response that arrives 100 ms late is still used.
  for (const ms of [1000, 100]) clock.advance(ms)
  t.like(await waited, { problem: 'timeout' })
})
