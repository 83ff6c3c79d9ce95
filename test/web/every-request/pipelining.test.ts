// Clients that send many requests for a file without waiting and read no response.
import { connect } from 'node:net'
import test from 'ava'
import { testConfig, unreachableIdp } from '../../helpers/config.js'
import { eventually } from '../../helpers/eventually.js'
import { askRaw } from '../../helpers/raw.js'
import { startServerProcess } from '../../helpers/server-process/index.js'
import { tempFolder } from '../../helpers/temp-folder.js'

const request = 'GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n'
const connections = 10

test(`${connections} connections with 16 or 1000 pipelined requests for a file do not use up the open files or the memory of the server`, async t => {
  const wwwroot = await tempFolder(t, { 'large.bin': Buffer.alloc(5_000_000), 'page.html': '<!doctype html>' })
  const config = testConfig(unreachableIdp, { wwwroot, log: { level: 'warn', requests: false } })
  // The server can open fewer files than there are requests.
  const { port, lines, heapUsed } = await startServerProcess(t, config, { freeFiles: 75 })
  const askOther = async () => (await askRaw(port, '/page.html')).statusCode
  t.is(await askOther(), 200)
  const floodAndAsk = async (requests: number) => {
    const clients = Array.from({ length: connections }, () => connect({ port, host: '127.0.0.1' }))
    const closed = clients.map(client => {
      client.on('error', () => {})
      return new Promise(resolve => client.on('close', resolve))
    })
    await Promise.all(clients.map(client => new Promise(resolve => client.write(request.repeat(requests), resolve))))
    for (let count = 0; count < 10; count += 1) t.is(await askOther(), 200)
    for (const client of clients) client.destroy()
    await Promise.all(closed)
    t.is(await askOther(), 200)
  }
  for (const requests of [16, 1000]) {
    // The first round loads and compiles code, which stays in memory, so the heap is measured after it.
    await floodAndAsk(requests)
    const before = await heapUsed()
    for (let round = 0; round < 5; round += 1) await floodAndAsk(requests)
    await eventually(async () => (await heapUsed()) - before < 1_000_000)
  }
  t.deepEqual(lines, [])
})
