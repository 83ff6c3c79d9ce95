import { once } from 'node:events'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { startTestServer } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'

test('a client that hangs up in the middle of a file is a line for debugging, not a stack on stderr', async t => {
  const wwwroot = await tempFolder(t, { 'large.bin': Buffer.alloc(5_000_000) })
  const { server, logs } = await startTestServer(t, { overrides: { wwwroot } })
  const client = connect(server.port, '127.0.0.1')
  client.write('GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await once(client, 'data')
  client.destroy()
  const brokenAnswer = () => logs.find(({ event }) => event === 'answer_broken')
  while (!brokenAnswer()) await setImmediate()
  t.like(brokenAnswer(), { level: 20 })
  t.truthy(brokenAnswer()?.request_id)
})
