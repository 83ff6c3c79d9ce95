// Ports on loopback for the servers of tests.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

interface Test {
  teardown(end: () => unknown): void
}

/** Listens on a free port, or on the given one, and returns it. The end of the test closes the server and its connections. */
export async function listen(t: Test, server: Server, port = 0): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

// Each process takes ports from a range of its own. The ranges are below 32768, where the ports begin that the system
// assigns itself. A client that still tries to reach a stopped server therefore never reaches the server of another test.
const [lowest, perProcess, ranges] = [10_240, 200, 110]
let range: Promise<number> | undefined
let used = Math.floor(Math.random() * perProcess)

/** A port on which nothing listens. No other test is given the same port, so a server can be restarted on it. */
export async function freePort(): Promise<number> {
  range ??= takeRange()
  const first = await range
  for (;;) {
    // The first port of the range is the one that marks the range as taken.
    const port = first + 1 + (used++ % (perProcess - 1))
    const server = await tryToListen(port)
    if (!server) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** Takes a range by listening on its first port as long as the process lives. */
async function takeRange(): Promise<number> {
  for (let range = 0; range < ranges; range++) {
    const first = lowest + range * perProcess
    const server = await tryToListen(first)
    if (!server) continue
    server.unref()
    return first
  }
  throw new Error('Every range of ports for tests is taken.')
}

async function tryToListen(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1')
  return once(server, 'listening').then(
    () => server,
    () => undefined
  )
}

/** Whether something at this address answers HTTP. */
export function isAnswering(url: string): Promise<boolean> {
  return fetch(url).then(
    () => true,
    () => false
  )
}
