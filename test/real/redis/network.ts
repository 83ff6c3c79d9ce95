// A network whose hosts can be separated from each other. A host is a loopback address from which its connections come.
// Every server is reached through a proxy, which recognizes the host of a client by this address. Linux accepts each
// address of 127.0.0.0/8.
import { connect, createServer, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { listen } from '../../helpers/ports.js'
import type { Teardown } from '../../helpers/scope.js'

export interface Network {
  /** Opens the port under which all other hosts reach this host. `leadTo` sets the port of its server. */
  openPort(host: string): Promise<{ readonly port: number; leadTo(port: number): void }>
  /**
   * Separates these hosts from all others. As on a broken line, connections stay open, and their bytes are delayed until
   * `mend`.
   */
  separate(hosts: ReadonlySet<string>): void
  mend(): void
}

/** Settings for a Node program, so that its connections come from this address. */
export function environmentAt(host: string): Record<string, string> {
  const module = fileURLToPath(new URL('./source-address.js', import.meta.url))
  return { NODE_OPTIONS: `--import=${module}`, TEST_SOURCE_ADDRESS: host }
}

interface Connection {
  readonly from: string
  readonly to: string
  readonly sockets: readonly [Socket, Socket]
}

export function createNetwork(scope: Teardown): Network {
  const connections = new Set<Connection>()
  let separated: ReadonlySet<string> = new Set()

  function setFlow({ from, to, sockets }: Connection): void {
    const flow = separated.has(from) === separated.has(to) ? 'resume' : 'pause'
    for (const socket of sockets) socket[flow]()
  }

  function setAll(hosts: ReadonlySet<string>): void {
    separated = hosts
    for (const connection of connections) setFlow(connection)
  }

  return {
    async openPort(host) {
      let target = 0
      const server = createServer({ noDelay: true }, client => {
        const socket = connect({ port: target, host: '127.0.0.1', noDelay: true })
        const connection: Connection = { from: client.remoteAddress ?? '', to: host, sockets: [client, socket] }
        connections.add(connection)
        const close = () => {
          connections.delete(connection)
          client.destroy()
          socket.destroy()
        }
        for (const end of connection.sockets) end.on('error', close).on('close', close)
        client.on('data', bytes => socket.write(bytes))
        socket.on('data', bytes => client.write(bytes))
        setFlow(connection)
      })
      const port = await listen(scope, server)
      scope.teardown(() => {
        for (const { sockets } of connections) for (const socket of sockets) socket.destroy()
      })
      return {
        port,
        leadTo(port) {
          target = port
        }
      }
    },
    separate: setAll,
    mend: () => setAll(new Set())
  }
}
