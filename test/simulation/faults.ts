// The faults of a schedule. Each kind can be switched on by itself, and the mixed schedules combine several.
import { hasTokens } from '#src/session/record.js'
import type { Person } from './person.js'
import type { SimulatedProvider } from './provider.js'
import type { SimulatedRedis } from './redis.js'
import type { SimulatedServer } from './server.js'
import type { SimulatedProcess, World } from './world.js'

export type FaultKind =
  | 'slow provider'
  | 'busy provider'
  | 'stop process'
  | 'suspend process'
  | 'stop process for long'
  | 'suspend process for long'
  | 'kill process'
  | 'cut process'
  | 'kill redis'
  | 'stop redis'
  | 'flush'
  | 'evict entry'
  | 'evict record'
  | 'promote'

export interface Faults {
  /** Ends all faults. */
  heal(): void
}

export interface FaultParts {
  readonly world: World
  readonly kinds: readonly FaultKind[]
  readonly servers: SimulatedServer[]
  /** Starts a process in place of a killed one. */
  readonly startServer: () => void
  readonly people: readonly Person[]
  readonly redis: SimulatedRedis
  readonly provider: SimulatedProvider
  /** True if all sessions are in Redis, so that a loss of data ends them. */
  readonly keepsSessionsInRedis: boolean
}

const LOST_WITH_REDIS = 'Redis lost its data, and the session was in Redis'
const LOST_WHILE_STOPPED = 'Redis lost its data while the owner was stopped'
const MAX_STOP_MS = 30_000
// A loss of data is noticed when somebody next needs a lock of the session.
const UNNOTICED_MS = 10_000
// These stops are longer than a lock lasts.
const LONG_STOP_MS = 70_000
const MAX_LONG_STOP_MS = 110_000
const SLOW_MS = 25_000
const MAX_GAP_MS = 12_000

export function startFaults(parts: FaultParts): Faults {
  const { world, kinds, servers, startServer, people, redis, provider, keepsSessionsInRedis } = parts
  let isOver = false
  let lastLossAt = 0
  const undo = new Set<() => void>()

  /** Ends a fault after some time, or when all faults end. */
  function endsAfter(ms: number, end: () => void): void {
    const once = () => {
      if (undo.delete(once)) end()
    }
    undo.add(once)
    world.after(ms, once)
  }

  /**
   * A process that is stopped cannot store again what only it has, so a loss of data may lose these logins.
   * @param sentBefore only requests that were sent before this time count
   */
  function excuseOnlyCopies(process: SimulatedProcess, sentBefore?: number): void {
    provider.excuseUnstored(process, LOST_WHILE_STOPPED, sentBefore)
    for (const person of people) {
      const grant = person.grant()
      const newest = grant && provider.newest(grant)
      if (!grant || newest?.process !== process) continue
      const cookie = person.cookie()
      const hasNewest = cookie !== undefined && hasTokens(cookie) && cookie.fields.refresh_token === newest.refreshToken
      if (!hasNewest) grant.excuse ??= LOST_WHILE_STOPPED
    }
  }

  function anyRunning(action: (server: SimulatedServer) => void): void {
    const running = servers.filter(({ process }) => process.isAlive && !process.isStopped)
    const server = running[Math.floor(world.random() * running.length)]
    if (server) action(server)
  }

  function stop({ process }: SimulatedServer, suspends: boolean, ms = world.between(500, MAX_STOP_MS)): void {
    world.note(`${process.name} is ${suspends ? 'suspended' : 'stopped'} for ${Math.round(ms)} ms`)
    // Nobody may have noticed the last loss of data before this process stops.
    if (world.now() - lastLossAt < UNNOTICED_MS) excuseOnlyCopies(process, lastLossAt)
    process.stop(suspends)
    endsAfter(ms, () => {
      world.note(`${process.name} continues`)
      process.resume()
    })
  }

  function stopForLong(suspends: boolean): void {
    anyRunning(server => {
      // Whatever waits for a response now is an accepted exception. A request that is not sent yet is none.
      provider.excuseUnstored(server.process, 'its process was stopped for longer than the lock lasts')
      stop(server, suspends, world.between(LONG_STOP_MS, MAX_LONG_STOP_MS))
    })
  }

  /** Accepts that this session is lost, or with `undefined` that all are. */
  function excuseSession(id: string | undefined): void {
    if (!keepsSessionsInRedis) return
    for (const person of people) {
      const grant = person.grant()
      if (grant && (id === undefined || id === person.name)) grant.excuse ??= LOST_WITH_REDIS
    }
  }

  function evict(part: 'entry' | 'record'): void {
    loseData(`Redis evicts one ${part}`, () => {
      const id = redis.evict(part)
      if (id !== undefined) excuseSession(id)
    })
  }

  function loseData(text: string, lose: () => void): void {
    world.note(text)
    lastLossAt = world.now()
    for (const { process } of servers) if (process.isStopped) excuseOnlyCopies(process)
    lose()
  }

  const strikes: Readonly<Record<FaultKind, () => void>> = {
    'slow provider'() {
      world.note('the provider is slow')
      provider.slowness = SLOW_MS
      endsAfter(world.between(1000, 20_000), () => {
        provider.slowness = 400
      })
    },
    'busy provider'() {
      world.note('the provider answers 429')
      provider.failures = 0.6
      endsAfter(world.between(1000, 5000), () => {
        provider.failures = 0
      })
    },
    'stop process': () => anyRunning(server => stop(server, false)),
    'suspend process': () => anyRunning(server => stop(server, true)),
    'stop process for long': () => stopForLong(false),
    'suspend process for long': () => stopForLong(true),
    'kill process': () =>
      anyRunning(server => {
        world.note(`${server.process.name} is killed`)
        provider.excuseUnstored(server.process, 'its process was killed')
        server.process.kill()
        servers.splice(servers.indexOf(server), 1)
        startServer()
      }),
    'cut process': () =>
      anyRunning(({ process }) => {
        world.note(`${process.name} is cut off from Redis`)
        redis.cut(process, true)
        endsAfter(world.between(500, 20_000), () => {
          world.note(`${process.name} reaches Redis again`)
          redis.cut(process, false)
        })
      }),
    'kill redis'() {
      world.note('Redis is down')
      redis.kill()
      endsAfter(world.between(200, 15_000), () => {
        world.note('Redis is up')
        redis.start()
      })
    },
    'stop redis'() {
      world.note('Redis is stopped')
      redis.stop()
      endsAfter(world.between(200, 15_000), () => {
        world.note('Redis continues')
        redis.resume()
      })
    },
    flush: () =>
      loseData('Redis loses all data', () => {
        redis.flush()
        excuseSession(undefined)
      }),
    'evict entry': () => evict('entry'),
    'evict record': () => evict('record'),
    promote: () =>
      loseData('a replica of Redis without the last writes is promoted', () => redis.promote(world.between(100, 1500)))
  }

  function next(): void {
    world.after(world.between(200, MAX_GAP_MS), () => {
      if (isOver) return
      strikes[kinds[Math.floor(world.random() * kinds.length)] as FaultKind]()
      next()
    })
  }
  if (kinds.length > 0) next()

  return {
    heal() {
      isOver = true
      for (const end of [...undo]) end()
    }
  }
}
