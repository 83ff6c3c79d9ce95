import { spawn } from 'node:child_process'
import { once } from 'node:events'
import test from 'ava'
import { startTestServer } from '../../helpers/server.js'

// Connects, and sends its request when the server can no longer read it.
const CLIENT = `
  const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1')
  socket.on('connect', () => process.stdout.write('connected'))
  process.stdin.once('data', () => setTimeout(() => socket.write('GET /healthz HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n'), 200))
  socket.once('data', data => { process.stdout.write(String(data).slice(0, 12)); process.exit() })
`

test('a request that arrived while the process was stopped is answered, and not refused because of its time', async t => {
  const limits = { headersTimeout: 300, connectionsCheckingInterval: 100 }
  const { server } = await startTestServer(t, { limits })
  const client = spawn(process.execPath, ['-e', CLIENT, String(server.port)], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => client.kill())
  await once(client.stdout, 'data')
  await new Promise(resolve => setTimeout(resolve, 50))
  client.stdin.write('go')
  await new Promise(resolve => setImmediate(resolve))
  // The process does nothing for a second, as after SIGSTOP.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000)
  const [status] = await once(client.stdout, 'data')
  t.is(String(status), 'HTTP/1.1 200')
})

test('a connection that sends no complete request is still refused in time', async t => {
  const limits = { headersTimeout: 300, connectionsCheckingInterval: 100 }
  const { server } = await startTestServer(t, { limits })
  const { connect } = await import('node:net')
  const socket = connect(server.port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write('GET /healthz HTTP/1.1\r\n')
  const [data] = await once(socket, 'data')
  t.is(String(data).slice(0, 12), 'HTTP/1.1 408')
})
