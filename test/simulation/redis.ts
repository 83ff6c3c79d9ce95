// A simulated Redis: the cells of the sessions, the host slots of the processes, and the messages. A replica of it is some moments
// behind, and may be promoted.

import type { SessionRecord } from '#src/cookie/session-record.js'
import { type Cells, type Message, StoreUnavailableError } from '#src/sessions/cells.js'
import { createStoreClock } from '#src/sessions/redis/redis-cells.js'
import type { SessionKey } from '#src/sessions/session-types.js'
import type { Cell } from '#src/sessions/transitions.js'
import type { Replica, Simulation } from './simulation.js'
import type { World } from './world.js'

type SessionCell = Cell<SessionRecord>

interface Node {
  /** The object is the version of the cell. */
  cells: Map<string, { readonly cell: SessionCell; readonly until: number }>
  hostSlots: Map<string, number>
  isUp: boolean
  isStopped: boolean
  slowMs: number
  readonly waiting: (() => void)[]
}

export interface SimulatedRedis {
  master: Node
  /** Called after each stored cell, with the cell that it replaces. */
  onStored: (id: string, cell: SessionCell, replica: Replica, replaced: SessionCell | undefined) => void
  cellOf(id: string): SessionCell | undefined
  cellsOf(replica: Replica): Cells<SessionCell, SessionKey>
  readHostSlot(replica: Replica, hostSlot: string): Promise<number | undefined>
  storeHostSlot(replica: Replica, hostSlot: string, since: number): Promise<void>
  publish(replica: Replica, message: Message): Promise<void>
  /** Ends the connection of a process, which then connects again. */
  disconnect(replica: Replica): void
  connect(replica: Replica): void
  /** Replaces the master by a replica that is `ms` behind. */
  promote(ms: number): void
  addMaster(): Node
}

const LIFETIME_MS = 48 * 3_600_000
const SNAPSHOT_MS = 100
const COMMAND_MS = 1000
/** A write is refused if the time of its rule differs from the time of Redis by more than this. */
export const TIME_CHECK_MS = 2000

export function createRedis(world: World, of: () => Simulation): SimulatedRedis {
  // A command that takes more than a second takes the connection down in half of the schedules.
  const keepsConnection = world.random() < 0.5
  let snapshots: { readonly at: number; readonly cells: Node['cells']; readonly hostSlots: Node['hostSlots'] }[] = []

  const latency = () => world.between(0.2, 3)

  function createNode(from?: Pick<Node, 'cells' | 'hostSlots'>): Node {
    const cells = new Map(from?.cells)
    const hostSlots = new Map(from?.hostSlots)
    return { cells, hostSlots, isUp: true, isStopped: false, slowMs: 0, waiting: [] }
  }

  function takeSnapshot(): void {
    const { cells, hostSlots } = redis.master
    const recent = snapshots.filter(({ at }) => at > world.now() - 3000)
    snapshots = [...recent, { at: world.now(), cells: new Map(cells), hostSlots: new Map(hostSlots) }]
    world.after(SNAPSHOT_MS, takeSnapshot)
  }
  world.after(0, takeSnapshot)

  function get({ cells }: Node, id: string): { readonly cell: SessionCell } | undefined {
    const found = cells.get(id)
    return found && found.until > world.now() ? found : undefined
  }

  function disconnect(replica: Replica): void {
    if (!replica.isConnected) return
    replica.isConnected = false
    replica.connection++
    connect(replica)
  }

  function connect(replica: Replica, attempt = 1): void {
    const timer = { process: replica.process, kind: 'timer' } as const
    world.after(
      Math.min(50 * attempt, 500) + world.between(0, 50),
      () => {
        if (replica.isConnected) return
        const { master } = redis
        if (replica.isCut || !master.isUp || master.isStopped) {
          connect(replica, attempt + 1)
          return
        }
        replica.isConnected = true
        replica.connection++
        replica.redis = master
        replica.connectedAt = replica.process.clock.monotonic()
        void replica.sessions.restoreAll()
        if (replica.since !== undefined) redis.storeHostSlot(replica, replica.hostSlot, replica.since).catch(() => {})
      },
      timer
    )
  }

  /** Sends a command, which fails after a second. */
  function send<T>(replica: Replica, work: (node: Node) => T): Promise<T> {
    const { process, connection, redis: node } = replica
    const input = { process, kind: 'input' } as const
    return new Promise((resolve, reject) => {
      const fail = () => reject(new StoreUnavailableError('redis'))
      if (!replica.isConnected) {
        fail()
        return
      }
      const isSame = () => replica.connection === connection && !replica.isCut
      let isDone = false
      const timeOut = () => {
        if (isDone) return
        isDone = true
        fail()
        if (!keepsConnection && replica.connection === connection) disconnect(replica)
      }
      world.after(COMMAND_MS, timeOut, { process, kind: 'timer' })
      const arrive = () => {
        if (!isSame() || !node.isUp) {
          world.after(latency(), fail, input)
          return
        }
        if (node.isStopped) {
          node.waiting.push(arrive)
          return
        }
        const reply = work(node)
        const receive = () => {
          isDone = true
          if (isSame()) resolve(reply)
          else fail()
        }
        world.after(latency() + node.slowMs * world.random(), receive, input)
      }
      world.after(latency() + node.slowMs * world.random(), arrive)
    })
  }

  function publishNow(node: Node, message: Message): void {
    for (const replica of of().replicas) {
      if (!replica.isConnected || replica.redis !== node) continue
      const { connection } = replica
      const receive = () => {
        if (replica.connection === connection && !replica.isCut) replica.sessions.receive(message)
      }
      const delayMs = latency() + node.slowMs * world.random()
      world.after(delayMs, receive, { process: replica.process, kind: 'input' })
    }
  }

  const redis: SimulatedRedis = {
    master: createNode(),
    onStored: () => {},
    cellOf: id => get(redis.master, id)?.cell,
    cellsOf(replica) {
      const { clock } = replica
      const { safeguard } = of()
      const time = createStoreClock(clock)
      return {
        now: time.now,
        async read({ id }, isWhole) {
          const found = await send(replica, node => get(node, id))
          const { entry, record } = found?.cell ?? {}
          return { version: found, content: entry && { entry, record: isWhole ? record : undefined } }
        },
        async swap({ id }, expected, next, options) {
          const learnTime = time.measure()
          const ruleTime = options.now
          const reply = await send(replica, node => {
            const found = get(node, id)
            const isExpected = found === expected.version || safeguard.comparesNothing
            const isInTime = Math.abs(ruleTime - world.now()) < TIME_CHECK_MS || safeguard.checksNoTime
            if (!isExpected || !isInTime) return { isDone: false, version: found, time: world.now() }
            const kept = next.entry.hasRecord ? (next.record ?? found?.cell.record) : undefined
            const cell = safeguard.change?.(of(), id, next) ?? next
            if (cell === 'ignore') return { isDone: true, version: found, time: world.now() }
            const version = { cell: { ...cell, record: kept }, until: world.now() + LIFETIME_MS }
            node.cells.set(id, version)
            redis.onStored(id, version.cell, replica, found?.cell)
            if (options.message) publishNow(node, options.message)
            return { isDone: true, version, time: world.now() }
          })
          learnTime(reply.time)
          const entry = reply.version?.cell.entry
          const content = entry && { entry, record: reply.isDone ? next.record : undefined }
          return { isDone: reply.isDone, snapshot: { version: reply.version, content } }
        }
      }
    },
    readHostSlot: (replica, hostSlot) => send(replica, ({ hostSlots }) => hostSlots.get(hostSlot)),
    storeHostSlot: (replica, hostSlot, since) =>
      send(replica, ({ hostSlots }) => void hostSlots.set(hostSlot, Math.max(since, hostSlots.get(hostSlot) ?? 0))),
    publish: (replica, message) => send(replica, node => publishNow(node, message)).catch(() => {}),
    disconnect,
    connect,
    promote(ms) {
      const snapshot = snapshots.filter(({ at }) => at <= world.now() - ms).at(-1)
      redis.master.isUp = false
      redis.master = createNode(snapshot)
      for (const replica of of().replicas) disconnect(replica)
    },
    addMaster() {
      redis.master = createNode(redis.master)
      return redis.master
    }
  }
  return redis
}
