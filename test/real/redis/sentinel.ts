// Three sentinels, a master and two replicas.
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../../helpers/eventually.js'
import { type RedisServer, startRedis } from '../../helpers/redis-server.js'
import type { Teardown } from '../../helpers/scope.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import type { Network } from './network.js'

type Node = Awaited<ReturnType<typeof startNode>>

export type SentinelRedis = Awaited<ReturnType<typeof startSentinelRedis>>

const SENTINELS = 3
const SERVERS = 3
/** The time after which sentinels regard a master as down. */
const DOWN_AFTER_MS = 1500
/** The setting `min-replicas-max-lag`. */
export const MAX_LAG_SECONDS = 2

export async function startSentinelRedis(scope: Teardown, network?: Network) {
  const common = [
    // A master without a connected replica rejects writes.
    ...['--min-replicas-to-write', '1', '--min-replicas-max-lag', String(MAX_LAG_SECONDS)],
    ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1', '--repl-timeout', '5']
  ]
  const servers: Node[] = []
  for (let index = 0; index < SERVERS; index++) {
    const master = servers[0]
    const replicaOf = master ? ['--replicaof', '127.0.0.1', String(master.knownPort)] : []
    servers.push(await startServer(scope, `127.0.2.${index + 1}`, network, [...common, ...replicaOf]))
  }
  const [first] = servers as [Node]
  await eventually(async () => /connected_slaves:2/.test(await first.admin.info('replication')))

  const settings = [
    `sentinel monitor main 127.0.0.1 ${first.knownPort} 2`,
    `sentinel down-after-milliseconds main ${DOWN_AFTER_MS}`,
    'sentinel failover-timeout main 6000'
  ]
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, (_, index) => startSentinel(scope, `127.0.3.${index + 1}`, network, settings))
  )
  for (const { admin } of sentinels) {
    await eventually(async () => {
      const [others, replicas] = await Promise.all([
        admin.call('SENTINEL', 'SENTINELS', 'main') as Promise<unknown[]>,
        admin.call('SENTINEL', 'REPLICAS', 'main') as Promise<unknown[]>
      ])
      return others.length === SENTINELS - 1 && replicas.length === SERVERS - 1
    })
  }

  /** The master that most sentinels name. */
  async function master(): Promise<Node> {
    for (;;) {
      const named = await Promise.all(
        sentinels.map(async ({ admin }) => {
          const [, port] = (await admin.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main')) as string[]
          return Number(port)
        })
      )
      const found = servers.find(({ knownPort }) => named.filter(port => port === knownPort).length > SENTINELS / 2)
      if (found) return found
      await pause(20)
    }
  }

  /** Resolves with the new master when most sentinels name another one than `old`. */
  async function promoted(old: Node): Promise<Node> {
    let current = old
    await eventually(async () => {
      current = await master()
      return current !== old
    })
    return current
  }

  return {
    url: `redis://${sentinels.map(({ knownPort }) => `127.0.0.1:${knownPort}`).join(',')}?sentinel=main`,
    master,
    promoted,
    /** Changes the master by a command to a sentinel. Resolves with the new master. */
    async failOver() {
      const old = await master()
      // A sentinel refuses while it knows no replica that is in a good state.
      await eventually(async () => {
        for (const { admin } of sentinels) {
          if ((await admin.call('SENTINEL', 'FAILOVER', 'main').catch(() => 'not yet')) === 'OK') return true
        }
        return false
      })
      return promoted(old)
    }
  }
}

function startServer(scope: Teardown, host: string, network: Network | undefined, options: readonly string[]) {
  return startNode(host, network, port => {
    const announced = ['--replica-announce-ip', '127.0.0.1', '--replica-announce-port', String(port)]
    return startRedis(scope, [...options, ...(port ? [...announced, '--bind-source-addr', host] : [])])
  })
}

function startSentinel(scope: Teardown, host: string, network: Network | undefined, settings: readonly string[]) {
  return startNode(host, network, async port => {
    const announced = ['sentinel announce-ip 127.0.0.1', `sentinel announce-port ${port}`, `bind-source-addr ${host}`]
    const content = [...settings, ...(port ? announced : []), ''].join('\n')
    const folder = await tempFolder(scope, { 'sentinel.conf': content })
    return startRedis(scope, [], { sentinelFile: join(folder, 'sentinel.conf') })
  })
}

/** @param start starts the node, which announces this port if there is a network */
async function startNode(
  host: string,
  network: Network | undefined,
  start: (port: number | undefined) => Promise<RedisServer>
) {
  const entrance = await network?.openPort(host)
  const server = await start(entrance?.port)
  entrance?.connectTo(server.port)
  return {
    ...server,
    /** The address from which its connections come. */
    host,
    /** The port under which sentinels and servers know it. */
    knownPort: entrance?.port ?? server.port
  }
}
