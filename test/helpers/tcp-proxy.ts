// A TCP proxy on loopback. A test puts it between two programs to disturb their connections, or to move one of them.
import { connect, createServer, type Socket } from 'node:net'
import { listen } from './ports.js'
import type { Teardown } from './scope.js'

export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>

interface Connection {
  /** The address of the client. */
  readonly address: string
  readonly sockets: readonly [client: Socket, target: Socket]
}

export async function startTcpProxy(t: Teardown, targetPort = 0) {
  const connections = new Set<Connection>()
  let port = targetPort
  let isHeld = (_address: string) => false

  function setFlow({ address, sockets }: Connection): void {
    for (const socket of sockets) socket[isHeld(address) ? 'pause' : 'resume']()
  }

  function open(client: Socket): void {
    const target = connect({ port, host: '127.0.0.1', noDelay: true })
    const connection: Connection = { address: client.remoteAddress ?? '', sockets: [client, target] }
    connections.add(connection)
    const close = () => {
      connections.delete(connection)
      for (const socket of connection.sockets) socket.destroy()
    }
    for (const socket of connection.sockets) socket.on('error', close).on('close', close)
    client.on('data', chunk => target.write(chunk))
    target.on('data', chunk => client.write(chunk))
    setFlow(connection)
  }

  return {
    port: await listen(t, createServer({ noDelay: true }, open)),
    /**
     * Keeps connections open but stops their bytes, as in a network partition.
     * @param given selects the connections by the address of the client
     */
    hold(given: (address: string) => boolean) {
      isHeld = given
      for (const connection of connections) setFlow(connection)
    },
    /** Sends new connections to another port on loopback. */
    connectTo(next: number) {
      port = next
    }
  }
}
