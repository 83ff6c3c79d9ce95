// A cluster of three masters, each with a replica.
import { eventually } from '../../helpers/eventually.js'
import type { RedisServer } from '../../helpers/redis-server.js'
import { startRedisCluster } from '../../helpers/redis-topologies.js'
import type { Teardown } from '../../helpers/scope.js'

export type ClusterRedis = Awaited<ReturnType<typeof startClusterRedis>>

const MASTERS = 3
const MOVE_MS = 5000

export async function startClusterRedis(scope: Teardown) {
  const redisArguments = ['--cluster-node-timeout', '1500', '--repl-diskless-sync-delay', '0']
  const { url, nodes } = await startRedisCluster(scope, { masters: MASTERS, others: MASTERS, redisArguments })
  const ids = await Promise.all(nodes.map(idOf))
  for (const [index, { admin }] of nodes.slice(MASTERS).entries()) {
    // A node may not know the id of its master yet.
    await eventually(async () => (await admin.call('CLUSTER', 'REPLICATE', ids[index] ?? '').catch(() => '')) === 'OK')
    await eventually(async () => /master_link_status:up/.test(await admin.info('replication')))
  }
  // The whole cluster knows that they are replicas.
  for (const { admin } of nodes) {
    await eventually(async () => String(await admin.call('CLUSTER', 'NODES')).match(/\bslave\b/g)?.length === MASTERS)
  }

  async function rolesOf({ admin }: RedisServer): Promise<string> {
    return String(await admin.info('replication').catch(() => ''))
  }

  /** The masters that serve slots now. */
  async function masters(): Promise<RedisServer[]> {
    const roles = await Promise.all(nodes.map(rolesOf))
    return nodes.filter((_, index) => roles[index]?.includes('role:master'))
  }

  async function portOfMaster(node: RedisServer): Promise<number> {
    return Number(/master_port:(\d+)/.exec(await rolesOf(node))?.[1])
  }

  async function setOwner(slot: number, owner: RedisServer): Promise<void> {
    const id = await idOf(owner)
    // The new owner comes first, otherwise a crash would leave the slot without an owner.
    for (const { admin } of [owner, ...(await masters()).filter(node => node !== owner)]) {
      await admin.call('CLUSTER', 'SETSLOT', slot, 'NODE', id)
    }
  }

  /** Moves up to `count` keys of a slot. */
  async function moveKeys(slot: number, from: RedisServer, to: RedisServer, count: number): Promise<void> {
    const keys = (await from.admin.call('CLUSTER', 'GETKEYSINSLOT', slot, count)) as string[]
    if (keys.length > 0) await from.admin.call('MIGRATE', '127.0.0.1', to.port, '', 0, MOVE_MS, 'KEYS', ...keys)
  }

  /** The numbers of the keys of all slots of this master that have a key. */
  async function keysBySlot({ admin }: RedisServer): Promise<ReadonlyMap<number, number>> {
    const counts = new Map<number, number>()
    for (const key of await admin.keys('*')) {
      const slot = Number(await admin.call('CLUSTER', 'KEYSLOT', key))
      counts.set(slot, (counts.get(slot) ?? 0) + 1)
    }
    return counts
  }

  async function anyMaster(random: () => number): Promise<RedisServer> {
    const all = await masters()
    return all[Math.floor(random() * all.length)] as RedisServer
  }

  return {
    url,
    anyMaster,
    /** Chooses neighbouring slots of a master, among them some that have keys, and another master to which they can move. */
    async chooseSlots(random: () => number, count: number) {
      const from = await anyMaster(random)
      const [to] = (await masters()).filter(master => master !== from) as [RedisServer]
      const counts = await keysBySlot(from)
      const used = [...counts.keys()].sort((a, b) => a - b)
      const middle = used[Math.floor(random() * used.length)] ?? 0
      const first = Math.max(used[0] ?? 0, Math.min(middle, (used.at(-1) ?? 0) - count + 1))
      const slots = Array.from({ length: count }, (_, index) => first + index)
      const keys = slots.reduce((sum, slot) => sum + (counts.get(slot) ?? 0), 0)
      return { from, to, slots, keys }
    },
    /** A replica of this master. */
    async replicaOf(master: RedisServer) {
      for (const node of nodes) if ((await portOfMaster(node)) === master.port) return node
      throw new Error(`The master at port ${master.port} has no replica.`)
    },
    /** Resolves when all slots are served and `node` is a master. */
    async promoted(node: RedisServer) {
      await eventually(async () => (await rolesOf(node)).includes('role:master'))
      await eventually(async () => /cluster_state:ok/.test(String(await node.admin.call('CLUSTER', 'INFO'))))
    },
    /** Marks a slot as migrating, so that its keys can be moved. */
    async beginMove(slot: number, from: RedisServer, to: RedisServer) {
      await to.admin.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from))
      await from.admin.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to))
    },
    moveKeys,
    /** Moves all keys of a slot that is migrating, and gives the slot to its new master. */
    async endMove(slot: number, from: RedisServer, to: RedisServer) {
      while (Number(await from.admin.call('CLUSTER', 'COUNTKEYSINSLOT', slot)) > 0) await moveKeys(slot, from, to, 100)
      await setOwner(slot, to)
    }
  }
}

async function idOf({ admin }: RedisServer): Promise<string> {
  return String(await admin.call('CLUSTER', 'MYID'))
}
