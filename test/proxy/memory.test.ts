// What requests through the proxy leave in the memory of the process.
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import { createUpstreams } from '#src/web/proxy/upstream.js'
import { startFixedUpstream } from '../helpers/upstream.js'

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
      // 100 kB that stand for the request and the response of the client.
      const data = new Array(12_500).fill(0)
      upstreams.send(request, { responded() {}, received: () => data.length > 0, ended, failed })
    })
  async function sendOneAfterAnother(count: number): Promise<void> {
    for (let sent = 0; sent < count; sent += 1) await send()
  }
  const sendAll = (count: number) => Promise.all(Array.from({ length: 10 }, () => sendOneAfterAnother(count / 10)))
  await sendAll(500)
  const first = sendAll(500)
  // What is in use now becomes old, and must not keep later requests in memory.
  collectGarbage()
  await first
  const before = oldBytes()
  await sendAll(2000)
  // If they survived, the old generation would grow by 30 MB or more, or be collected and shrink as much. Other work of the process
  // leaves some megabytes.
  const change = oldBytes() - before
  t.true(Math.abs(change) < 15_000_000, `${change} bytes`)
})
