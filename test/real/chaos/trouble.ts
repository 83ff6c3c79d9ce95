// Failures during a storm, generated from a seed: Redis or server processes are killed or stopped.
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom } from '../../helpers/random.js'
import type { RedisServer } from '../../helpers/redis-server.js'
import type { Fleet } from './fleet.js'

/** `kill` is SIGKILL. `restart` is a deployment: SIGTERM, and a new process in the same slot. */
export const troubleKinds = ['none', 'redis', 'kill', 'restart'] as const
export type TroubleKind = (typeof troubleKinds)[number]

export interface Trouble {
  /** Stops the failures. Resolves when everything runs again. */
  end(): Promise<void>
  figures(): Readonly<Record<string, string | number>>
}

export function startTrouble(
  kind: TroubleKind,
  { fleet, redis, random }: { fleet: Fleet; redis: RedisServer | undefined; random: () => number }
): Trouble {
  const exitCodes = new Set<number | null>()
  let count = 0
  let hasEnded = false

  async function killRedis(): Promise<void> {
    await pause(2000 + random() * 2000)
    if (hasEnded) return
    count++
    await redis?.kill()
    await pause(100 + random() * 1400)
    await redis?.restart()
  }

  async function endProcess(): Promise<void> {
    await pause(300 + random() * 1200)
    const replica = fleet.replicas[Math.floor(random() * fleet.replicas.length)]
    if (hasEnded || !replica) return
    count++
    if (kind === 'kill') await fleet.kill(replica.slot)
    else exitCodes.add(await fleet.stop(replica.slot))
    await fleet.start(replica.slot)
  }

  async function run(): Promise<void> {
    while (!hasEnded && kind !== 'none') await (kind === 'redis' ? killRedis() : endProcess())
  }

  const running = run()
  const names = {
    none: 'failures',
    redis: 'Redis killed and restarted',
    kill: 'processes killed',
    restart: 'processes restarted'
  }
  return {
    async end() {
      hasEnded = true
      await running
    },
    figures: () => ({ [names[kind]]: count, ...(exitCodes.size > 0 && { 'exit codes': [...exitCodes].join(', ') }) })
  }
}

/** The longest fault lasts for this share of the whole run: 20 s of two minutes. */
const MAX_FAULT = 1 / 6
/** The longest time between two faults of a process, as a multiple of the longest fault. */
const CALM = 2.5
/** The share of faults in which a process is killed. */
const KILLED = 0.3

/** Each process, and Redis, has its own sequence of faults, so that faults overlap. */
export function combinedTrouble(fleet: Fleet, redis: RedisServer, seed: number, seconds: number): Trouble {
  const longestMs = seconds * 1000 * MAX_FAULT
  const counts = { 'processes killed': 0, 'processes stopped': 0, 'Redis killed': 0, 'Redis stopped': 0 }
  const slots = fleet.replicas.map(({ slot }) => slot)
  const ending = new AbortController()
  const ended = new Promise<void>(resolve => ending.signal.addEventListener('abort', () => resolve()))

  async function repeat(sequence: number, fault: (random: () => number) => Promise<void>): Promise<void> {
    const random = createRandom(seed + sequence * 1_000_003)
    while (!ending.signal.aborted) {
      await Promise.race([pause(random() * CALM * longestMs), ended])
      if (!ending.signal.aborted) await fault(random)
    }
  }

  async function disturbProcess(slot: number, random: () => number): Promise<void> {
    if (random() < KILLED) {
      counts['processes killed']++
      await fleet.kill(slot)
      await pause((random() * longestMs) / 4)
      await fleet.start(slot)
    } else {
      counts['processes stopped']++
      const replica = fleet.inSlot(slot)
      replica.pause()
      await pause(random() * longestMs)
      replica.resume()
    }
  }

  async function disturbRedis(random: () => number): Promise<void> {
    if (random() < 0.5) {
      counts['Redis killed']++
      await redis.kill()
      await pause((random() * longestMs) / 4)
      await redis.restart()
    } else {
      counts['Redis stopped']++
      redis.pause()
      await pause((random() * longestMs) / 2)
      redis.resume()
    }
  }

  const running = Promise.all([
    repeat(slots.length, disturbRedis),
    ...slots.map(slot => repeat(slot, random => disturbProcess(slot, random)))
  ])
  return {
    async end() {
      ending.abort()
      await running
    },
    figures: () => counts
  }
}
