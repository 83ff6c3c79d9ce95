// A TCP proxy on loopback. A scenario puts it between two programs to disturb their connections.
import { connect, createServer, type Socket } from 'node:net'
import { listen } from '../../helpers/ports.js'
import type { Teardown } from '../../helpers/scope.js'

export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>

type State = 'open' | 'cut' | 'swallowing'

interface Connection {
  readonly address: string
  readonly client: Socket
  readonly target: Socket
  /**
   * True if replies may have been dropped. The connection cannot be used again, because the client would read later
   * replies as those to earlier requests.
   */
  isSpoilt: boolean
}

export async function startTcpProxy(scope: Teardown, targetPort: number) {
  const connections = new Set<Connection>()
  let port = targetPort
  let state: State = 'open'
  let delayMs = 0
  let isHeld = (_address: string) => false

  function setFlow({ address, client, target }: Connection): void {
    const flow = isHeld(address) ? 'pause' : 'resume'
    client[flow]()
    target[flow]()
  }

  function open(client: Socket): void {
    if (state === 'cut') {
      client.destroy()
      return
    }
    const target = connect({ port, host: '127.0.0.1', noDelay: true })
    const address = client.remoteAddress ?? ''
    const connection: Connection = { address, client, target, isSpoilt: state === 'swallowing' }
    connections.add(connection)
    const close = () => {
      connections.delete(connection)
      destroy(connection)
    }
    for (const socket of [client, target]) socket.on('error', close).on('close', close)
    client.on('data', chunk => target.write(chunk))
    relayAnswers(connection)
    setFlow(connection)
  }

  function relayAnswers({ client, target }: Connection): void {
    let dueAt = 0
    target.on('data', chunk => {
      if (state === 'swallowing') return
      const now = performance.now()
      dueAt = Math.max(dueAt, now + delayMs)
      if (dueAt <= now) client.write(chunk)
      else setTimeout(() => client.write(chunk), dueAt - now)
    })
  }

  const ownPort = await listen(scope, createServer({ noDelay: true }, open))
  scope.teardown(() => {
    for (const connection of connections) destroy(connection)
  })
  return {
    port: ownPort,
    /** Breaks all connections and every new one, until `mend` is called. */
    cut() {
      state = 'cut'
      for (const connection of connections) destroy(connection)
    },
    /**
     * Keeps connections open but stops their bytes, as in a network partition. `mend` lets the bytes through.
     * @param given selects the connections by the address of the client, by default all
     */
    hold(given: (address: string) => boolean = () => true) {
      isHeld = given
      for (const connection of connections) setFlow(connection)
    },
    /** Delays each response of the target by this number of milliseconds. */
    delay(ms: number) {
      delayMs = ms
    },
    /** Drops the responses of the target and lets requests through. `mend` breaks these connections. */
    swallowAnswers() {
      state = 'swallowing'
      for (const connection of connections) connection.isSpoilt = true
    },
    /** Sends new connections to another port on loopback. */
    connectTo(next: number) {
      port = next
    },
    mend() {
      state = 'open'
      delayMs = 0
      isHeld = () => false
      for (const connection of connections) {
        if (connection.isSpoilt) destroy(connection)
        else setFlow(connection)
      }
    }
  }
}

function destroy({ client, target }: Connection): void {
  client.destroy()
  target.destroy()
}
