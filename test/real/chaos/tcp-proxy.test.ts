import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import { listen } from '../../helpers/ports.js'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.js'

/** Starts a server that responds to each chunk with its name and the chunk, a proxy in front of it, and a client. */
async function setUp(t: ExecutionContext) {
  const server = await startEcho(t, 'first')
  const proxy = await startTcpProxy(t, server)
  return { proxy, ...open(t, proxy), client: () => open(t, proxy) }
}

/** Resolves with the port of the server. */
function startEcho(t: ExecutionContext, name: string): Promise<number> {
  const server = createServer(socket => {
    socket.on('error', () => {}).on('data', chunk => socket.write(`${name} ${chunk}`))
  })
  return listen(t, server)
}

function open(t: ExecutionContext, { port }: TcpProxy) {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  t.teardown(() => socket.destroy())
  // A reset also counts as the end of a connection. With `once`, a reset would reject.
  const closed = new Promise<boolean>(resolve => socket.once('close', () => resolve(true)))
  return {
    closed,
    send: (text: string) => socket.write(text),
    received: async () => String((await once(socket, 'data'))[0])
  }
}

test('the proxy passes bytes in both directions', async t => {
  const { send, received } = await setUp(t)
  send('a')
  t.is(await received(), 'first a')
})

test('cut() breaks connections and refuses new ones until mend()', async t => {
  const { proxy, client, send, received, closed } = await setUp(t)
  send('a')
  await received()
  proxy.cut()
  t.true(await closed)
  t.true(await client().closed)
  proxy.mend()
  const after = client()
  after.send('b')
  t.is(await after.received(), 'first b')
})

test('bytes held by hold() arrive on the same connection after mend()', async t => {
  const { proxy, send, received } = await setUp(t)
  send('a')
  await received()
  proxy.hold()
  send('b')
  let isMended = false
  const answer = received().then(text => ({ text, isMended }))
  await new Promise(resolve => setTimeout(resolve, 50))
  isMended = true
  proxy.mend()
  t.deepEqual(await answer, { text: 'first b', isMended: true })
})

test('delay() delays replies', async t => {
  const { proxy, send, received } = await setUp(t)
  proxy.delay(100)
  const started = performance.now()
  send('a')
  await received()
  t.true(performance.now() - started >= 99)
})

test('mend() breaks connections whose replies were dropped by swallowAnswers()', async t => {
  const { proxy, send, received, closed } = await setUp(t)
  send('a')
  await received()
  proxy.swallowAnswers()
  send('b')
  proxy.mend()
  t.true(await closed)
})

test('connectTo() sends new connections to another port', async t => {
  const { proxy, client } = await setUp(t)
  proxy.connectTo(await startEcho(t, 'second'))
  const { send, received } = client()
  send('a')
  t.is(await received(), 'second a')
})
