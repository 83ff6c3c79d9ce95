import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import test from 'ava'
import { eventually } from '../../helpers/eventually.js'
import { sendRaw } from '../../helpers/raw.js'
import { startTestServer } from '../../helpers/server.js'
import { tempFolder } from '../../helpers/temp-folder.js'

test('if a client disconnects in the middle of a file, the log has one debug line', async t => {
  const wwwroot = await tempFolder(t, { 'large.bin': Buffer.alloc(5_000_000) })
  const { server, logs } = await startTestServer(t, { overrides: { wwwroot } })
  const client = connect(server.port, '127.0.0.1')
  client.write('GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await once(client, 'data')
  client.destroy()
  const brokenAnswer = () => logs.find(({ event }) => event === 'response_broken')
  await eventually(() => brokenAnswer() !== undefined)
  t.like(brokenAnswer(), { level: 20 })
  t.truthy(brokenAnswer()?.request_id)
})

test('if a response fails on the server after it has begun, the log has one error line', async t => {
  const { server, logs } = await startTestServer(t, {
    parts: {
      extend(app) {
        app.use(ctx => {
          ctx.body = Readable.from(failingHalfway())
        })
      }
    }
  })
  const { bytes, closedByServer } = await sendRaw(server.port, 'GET /own HTTP/1.1\r\nHost: localhost\r\n\r\n')
  t.regex(bytes.toString(), /^HTTP\/1\.1 200 OK\r\n[\s\S]*one half/)
  t.true(closedByServer)
  await eventually(() => logs.find(({ event }) => event === 'request') !== undefined)
  t.deepEqual(
    logs.entries.filter(({ event }) => event === 'response_broken').map(({ level }) => level),
    [50]
  )
})

async function* failingHalfway() {
  yield 'one half'
  throw new Error('the disk is gone')
}
