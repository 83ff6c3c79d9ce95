// What requests through the proxy leave in the memory of the process.
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import { createUpstreams } from '#src/web/proxy/upstream.js'
import { startFixedUpstream } from '../helpers/upstream.js'

const CONNECTIONS = 10
const EACH_BYTES = 100_000

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const oldBytes = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0

test('the data of ended requests does not survive until a full garbage collection', async t => {
  const { origin } = await startFixedUpstream(t, 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  const upstreams = createUpstreams({ connectTimeoutMs: 5000 })
  t.teardown(() => upstreams.close())
  const request = { origin, target: '/', method: 'GET', headers: [], body: undefined, silenceMs: 10_000 }
  const send = () =>
    new Promise<void>((ended, failed) => {
      // Stands for the request and response of the client.
      const data = new Array(EACH_BYTES / 8).fill(0)
      upstreams.send(request, { responded() {}, received: () => data.length > 0, ended, failed })
    })
  const sendAll = (count: number) =>
    Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        for (let sent = 0; sent < count / CONNECTIONS; sent += 1) await send()
      })
    )
  await sendAll(500)
  const first = sendAll(500)
  // What is in use now becomes old, and must not keep later requests in memory.
  collectGarbage()
  await first
  const before = oldBytes()
  await sendAll(2000)
  const kept = oldBytes() - before
  t.true(kept < 2_000_000, `${kept} bytes`)
})
