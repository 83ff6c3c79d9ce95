// A simulated Redis: the production implementation of the scripts in memory, behind connections that break.
import { createHash } from 'node:crypto'
import { LUA, type ScriptName } from '#src/store/lua.js'
import { createMemoryScripts, createMemoryStorage, type Entry, type MemoryStorage } from '#src/store/memory-scripts.js'
import type { RedisClient, RedisEvents } from '#src/store/redis-client.js'
import type { Position, ScriptTimes, SessionScripts } from '#src/store/scripts.js'
import type { SimulatedProcess, World } from './world.js'

export interface SimulatedRedis {
  /** Opens a connection of a process, as ioredis does. */
  open(process: SimulatedProcess, events: RedisEvents): Promise<RedisClient>
  /** Breaks all connections. Nobody can connect until `start`. */
  kill(): void
  start(): void
  /** Answers nothing until `resume`, but keeps the connections open. */
  stop(): void
  resume(): void
  /** Removes all data, as FLUSHALL does. */
  flush(): void
  /** Removes the entry or the record of one session, as an eviction does. Returns the id of the session. */
  evict(part: 'entry' | 'record'): string | undefined
  /** Continues with the data of about `ms` milliseconds ago, as a replica does that is promoted. Breaks all connections. */
  promote(ms: number): void
  /** Separates a process from Redis, or connects it again. */
  cut(process: SimulatedProcess, isCut: boolean): void
  /** The scripts that have run, by name. */
  readonly ran: Map<ScriptName, number>
  /** The number of messages that processes have received. */
  delivered(): number
  /** The milliseconds that a command which arrives now waits for the commands before it. */
  queueMs(): number
}

export interface RedisHooks {
  /** Called with every encrypted record that has been stored. */
  onSaved(id: string, rev: number, text: string): void
  /** The scripts that this Redis pretends to run. They change nothing. */
  readonly ignored: readonly ScriptName[]
  /** True if no process gets the messages of the others. */
  readonly dropsMessages: boolean
  /** The time that Redis needs for its work. Without it, Redis has no queue. */
  readonly service?: ServiceTimes
}

/** Redis works on one command after the other. */
export interface ServiceTimes {
  readonly scriptMs: number
  /** The time for sending a published message to one process. */
  readonly deliveryMs: number
}

type Reply = string | number | null | readonly (string | number)[]

interface Connection {
  readonly process: SimulatedProcess
  readonly events: RedisEvents
  isOpen: boolean
  readonly pending: Set<(error: Error) => void>
  /** The time at which the last command arrived. Commands of a connection keep their order. */
  lastArrival: number
  /** The time at which the last command was sent. */
  lastSent: number
  lastReply: number
}

const SNAPSHOT_MS = 250

export function createRedis(world: World, times: ScriptTimes, hooks: RedisHooks): SimulatedRedis {
  const storage: MemoryStorage<string> = createMemoryStorage(world.now, times)
  const scripts = createMemoryScripts<string>(world.now, times, storage)
  const connections = new Set<Connection>()
  const isCut = new Set<SimulatedProcess>()
  const ran = new Map<ScriptName, number>()
  const stopped: (() => void)[] = []
  let isUp = true
  let isStopped = false
  let busyUntil = 0
  let delivered = 0
  let snapshots: { readonly time: number; readonly restore: () => void }[] = []

  const latency = () => world.between(0.2, 4)
  const names = new Map(
    (Object.keys(LUA) as ScriptName[]).map(name => [createHash('sha1').update(LUA[name]).digest('hex'), name])
  )

  function takeSnapshot() {
    const entries = [...storage.entries.entries()].map(([id, entry, leftMs]) => [id, { ...entry }, leftMs] as const)
    const records = [...storage.records.entries()].map(([id, text, leftMs]) => [id, text, leftMs] as const)
    const time = world.now()
    const restore = () => {
      clear()
      const ageMs = world.now() - time
      for (const [id, entry, leftMs] of entries) storage.entries.set(id, { ...entry } as Entry, leftMs - ageMs)
      for (const [id, text, leftMs] of records) storage.records.set(id, text, leftMs - ageMs)
    }
    snapshots = [...snapshots.filter(snapshot => time - snapshot.time < 3000), { time, restore }]
    world.after(SNAPSHOT_MS, takeSnapshot)
  }
  // A simulation with service times has many sessions, and no replica of Redis is promoted.
  if (!hooks.service) takeSnapshot()

  function clear() {
    for (const [id] of storage.entries.entries()) storage.entries.delete(id)
    for (const [id] of storage.records.entries()) storage.records.delete(id)
  }

  function close(connection: Connection) {
    if (!connection.isOpen) return
    connection.isOpen = false
    const { process, events, pending } = connection
    const failed = [...pending]
    pending.clear()
    world.after(
      latency(),
      () => {
        for (const reject of failed) reject(new Error('Connection is closed.'))
        events.onLost()
      },
      { process, kind: 'input' }
    )
    connectLater(connection, 1)
  }

  function connectLater(connection: Connection, attempt: number) {
    const { process, events } = connection
    const delayMs = Math.min(50 * attempt, 500) + world.between(0, 50)
    world.after(
      delayMs,
      () => {
        if (!isUp || isStopped || isCut.has(process)) return connectLater(connection, attempt + 1)
        connection.isOpen = true
        events.onReady()
        events.onSubscribed?.()
      },
      { process, kind: 'timer' }
    )
  }

  /** Calls `action` when Redis has done all earlier work and this one. */
  function serve(ms: number, action: () => void): void {
    if (!hooks.service) return void action()
    busyUntil = Math.max(busyUntil, world.now()) + ms
    world.after(busyUntil - world.now(), action)
  }

  function send(connection: Connection, serviceMs: number, work: () => Promise<Reply>): Promise<Reply> {
    const { process, pending } = connection
    if (!connection.isOpen) return Promise.reject(new Error('Connection is closed.'))
    return new Promise((resolve, reject) => {
      pending.add(reject)
      const arrive = () => {
        if (!connection.isOpen || !isUp) return
        if (isStopped) return void stopped.push(arrive)
        serve(serviceMs, () => {
          if (!connection.isOpen || !isUp) return
          void work().then(reply => {
            connection.lastReply = Math.max(connection.lastReply + 0.001, world.now() + latency())
            world.after(
              connection.lastReply - world.now(),
              () => {
                if (pending.delete(reject)) resolve(reply)
              },
              { process, kind: 'input' }
            )
          }, reject)
        })
      }
      // ioredis sends the commands of the same moment together, so Redis works on all of them before it reads other connections.
      const isTogether = hooks.service !== undefined && connection.lastSent === world.now()
      if (!isTogether) connection.lastArrival = Math.max(connection.lastArrival + 0.001, world.now() + latency())
      connection.lastSent = world.now()
      world.after(connection.lastArrival - world.now(), arrive)
    })
  }

  async function run(digest: string, [key, , ...args]: (string | number)[]): Promise<Reply> {
    const name = names.get(digest) as ScriptName
    ran.set(name, (ran.get(name) ?? 0) + 1)
    const id = /\{(.*)\}/.exec(String(key))?.[1] as string
    if (hooks.ignored.includes(name)) return name === 'hold' ? 1 : null
    const reply = await runScript(scripts, name, id, args)
    if (name === 'save' && args[0] === 'tokens') hooks.onSaved(id, Number(args[1]), String(args[7]))
    return reply
  }

  const { scriptMs = 0, deliveryMs = 0 } = hooks.service ?? {}

  return {
    ran,
    delivered: () => delivered,
    queueMs: () => Math.max(0, busyUntil - world.now()),
    async open(process, events) {
      const connection: Connection = {
        process,
        events,
        isOpen: true,
        pending: new Set(),
        lastArrival: 0,
        lastSent: 0,
        lastReply: 0
      }
      connections.add(connection)
      const commands = {
        evalsha: (digest: string, _keys: number, ...args: (string | number)[]) =>
          send(connection, scriptMs, () => run(digest, args)),
        eval: () => Promise.reject(new Error('every script is known')),
        set: () => send(connection, scriptMs, async () => 'OK'),
        publish: (channel: string, text: string) =>
          send(connection, deliveryMs * connections.size, async () => {
            for (const { isOpen, events, process } of connections) {
              if (!isOpen || hooks.dropsMessages) continue
              delivered++
              world.after(latency(), () => events.onMessage(channel, text), { process, kind: 'input' })
            }
            return connections.size
          })
      } as unknown as RedisClient['commands']
      return { commands, close: async () => void connections.delete(connection) }
    },
    kill() {
      isUp = false
      busyUntil = 0
      for (const connection of connections) close(connection)
    },
    start() {
      isUp = true
    },
    stop() {
      isStopped = true
    },
    resume() {
      isStopped = false
      for (const arrive of stopped.splice(0)) arrive()
    },
    flush: clear,
    evict(part) {
      const map = part === 'entry' ? storage.entries : storage.records
      const ids = [...map.entries()].map(([id]) => id)
      const id = ids[Math.floor(world.random() * ids.length)]
      if (id !== undefined) map.delete(id)
      return id
    },
    promote(ms) {
      const old = snapshots.filter(({ time }) => time <= world.now() - ms).at(-1)
      old?.restore()
      snapshots = []
      for (const connection of connections) close(connection)
    },
    cut(process, cuts) {
      if (!cuts) return void isCut.delete(process)
      isCut.add(process)
      for (const connection of connections) if (connection.process === process) close(connection)
    }
  }
}

/** Runs a script with the arguments of its Lua form, and returns the reply of its Lua form. */
async function runScript(
  scripts: SessionScripts<string>,
  name: ScriptName,
  id: string,
  args: (string | number)[]
): Promise<Reply> {
  const text = (index: number) => String(args[index])
  const number = (index: number) => Number(args[index])
  switch (name) {
    case 'look':
      return positionReply(await scripts.look(id, number(0)))
    case 'take': {
      const request = { rev: number(0), owner: text(1), reported: text(2) || undefined, newLoss: text(3) }
      const taken = await scripts.take(id, request)
      if (taken.kind === 'mine') return ['mine', taken.suspectMs ?? -1]
      if (taken.kind === 'held') return ['held']
      if (taken.kind === 'pausing') return ['pausing', taken.pauseMs]
      if (taken.kind === 'unsettled') return ['unsettled', taken.loss]
      return positionReply(taken)
    }
    case 'save': {
      const outcome =
        args[0] === 'tokens'
          ? ({ kind: 'tokens', record: text(7), keepsLock: number(8) === 1, pauseMs: number(9) } as const)
          : args[0] === 'ended'
            ? ({ kind: 'ended', reason: text(7) } as const)
            : ({ kind: 'failure', pauseMs: number(7), isDoubtful: number(8) === 1 } as const)
      const saved = await scripts.save(id, { rev: number(1), owner: text(2), outcome, newLoss: text(3) })
      return saved.kind === 'saved' ? ['saved', saved.isOwner ? 1 : 0] : positionReply(saved)
    }
    case 'seen':
      await scripts.seen(id, number(0), text(1), text(5) || undefined)
      return null
    case 'unseen':
      await scripts.unseen(id)
      return null
    case 'hold':
      return (await scripts.hold(id, number(0), text(1), number(2), text(3))) ? 1 : 0
    case 'out': {
      const out = await scripts.out(id)
      return out ? [out.rev, out.record] : null
    }
  }
}

function positionReply(found: Position<string>): Reply {
  switch (found.kind) {
    case 'same':
      return ['same', found.isSeen ? 1 : 0, found.hasRecord ? 1 : 0]
    case 'newer':
      return ['newer', found.rev, found.record, found.isSeen ? 1 : 0]
    case 'ended':
      return ['ended', found.reason]
    default:
      return [found.kind]
  }
}
