import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { closeServer, listen } from '#src/base/listener.js'

function create(t: ExecutionContext, respond: RequestListener = (_request, response) => response.end()) {
  const server = createServer(respond)
  t.teardown(() => server.closeAllConnections())
  return server
}

test('a port in use is rejected with the error of Node and the name of the listener', async t => {
  const first = create(t)
  const place = { port: await listen(first, { port: 0, host: '127.0.0.1' }), host: '127.0.0.1' }
  t.like(await t.throwsAsync(listen(create(t), { ...place, listener: 'metrics' })), {
    code: 'EADDRINUSE',
    listener: 'metrics'
  })
  t.false('listener' in ((await t.throwsAsync(listen(create(t), place))) ?? {}))
  await closeServer(first)
})

test('a request that does not end is cut off after the grace period', async t => {
  const server = create(t, () => {})
  const port = await listen(server, { port: 0, host: '127.0.0.1' })
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  const requested = once(server, 'request')
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await requested
  const ended = once(socket, 'close')
  await closeServer(server, 20)
  await ended
  t.false(server.listening)
})
