// Ports on loopback for the servers of tests.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

interface Test {
  teardown(end: () => unknown): void
}

/**
 * Listens on the given port, or by default on a free one, and returns the port. At the end of the test it closes the
 * server and its connections.
 */
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

// Each process takes ports from its own range. The ranges are below 32768, where the ports begin that the system
// assigns. A client that keeps trying to reach a stopped server therefore never reaches the server of another test.
const [lowest, perProcess, ranges] = [10_240, 200, 110]
let range: Promise<number> | undefined
let used = Math.floor(Math.random() * perProcess)

/** A port on which nothing listens. No other test is given the same port, so a server can be restarted on it. */
export async function freePort(): Promise<number> {
  range ??= takeRange()
  const first = await range
  for (;;) {
    // The first port of the range marks the range as taken, so it is not given out.
    const port = first + 1 + (used++ % (perProcess - 1))
    const server = await tryToListen(port)
    if (!server) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

/** Reserves a range by listening on its first port until the process ends. */
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

/** Returns true if a server responds to HTTP requests at this URL, also with a redirect. */
export function isAnswering(url: string): Promise<boolean> {
  return fetch(url, { redirect: 'manual' }).then(
    () => true,
    () => false
  )
}
