// The process is stopped while requests arrive. A test in the process of the server cannot stop this process by a signal, so it
// blocks the event loop, which has the same effect on the timers and sockets. No other test may run in this process meanwhile.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { eventually } from '../../helpers/eventually.js'
import { sendRaw } from '../../helpers/raw.js'
import { startTestServer } from '../../helpers/server.js'

const limits = { headersTimeout: 2000, requestTimeout: 2000, connectionsCheckingInterval: 100 }
const request = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'

function stopProcess(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Opens a connection, and resolves when the server has accepted it and read `part`. */
async function opened(t: ExecutionContext, port: number, part = ''): Promise<Socket & { text: string }> {
  const socket = Object.assign(connect(port, '127.0.0.1'), { text: '' })
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  socket.on('data', chunk => {
    socket.text += String(chunk)
  })
  await once(socket, 'connect')
  if (part !== '') socket.write(part)
  // The server reads connections in the order in which they were opened.
  await sendRaw(port, request, { answers: 1 })
  return socket
}

/** Opens a connection for each part. On a busy machine this may take a large part of the time limit, so it is then done again. */
async function openedInTime(t: ExecutionContext, port: number, parts: readonly string[]) {
  for (;;) {
    const startedAt = performance.now()
    const sockets = await Promise.all(parts.map(part => opened(t, port, part)))
    if (performance.now() - startedAt < limits.headersTimeout / 4) return sockets
    for (const socket of sockets) socket.destroy()
  }
}

for (const port of ['port', 'forwardAuthPort'] as const) {
  test.serial(`after a stop of the process, a request at ${port} gets 408 only if it stays incomplete`, async t => {
    const { server } = await startTestServer(t, { limits, settings: { forwardAuth: { address: '127.0.0.1:0' } } })
    const at = server[port] as number
    const part = request.slice(0, 20)
    const [unused, begun, slow] = await openedInTime(t, at, ['', part, part])
    if (!unused || !begun || !slow) return t.fail()
    unused.write(request)
    begun.write(request.slice(20))
    stopProcess(2 * limits.headersTimeout)
    await eventually(() => unused.text !== '' && begun.text !== '')
    const status = port === 'port' ? 200 : 401
    const statuses = [unused, begun].map(({ text }) => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]))
    t.deepEqual(statuses, [status, status])
    await eventually(() => slow.destroyed || slow.readableEnded)
    t.regex(slow.text, /^HTTP\/1\.1 408 /)
  })
}
