// Further failures during a storm, generated from a seed: Redis or server processes are killed.
import { setTimeout as pause } from 'node:timers/promises'
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

interface TroubleParts {
  readonly fleet: Fleet
  readonly redis: RedisServer | undefined
  readonly random: () => number
}

export function startTrouble(kind: TroubleKind, parts: TroubleParts): Trouble {
  const { fleet, redis, random } = parts
  const counts = { redisKilled: 0, killed: 0, stopped: 0, exitCodes: [] as (number | null)[] }
  let hasEnded = false

  async function killRedis(server: RedisServer): Promise<void> {
    await pause(2000 + random() * 2000)
    if (hasEnded) return
    counts.redisKilled++
    await server.kill()
    await pause(100 + random() * 1400)
    await server.restart()
  }

  async function endProcess(): Promise<void> {
    await pause(300 + random() * 1200)
    if (hasEnded) return
    const replica = fleet.replicas[Math.floor(random() * fleet.replicas.length)]
    if (!replica) return
    if (kind === 'kill') {
      counts.killed++
      await fleet.kill(replica.name)
    } else {
      counts.stopped++
      counts.exitCodes.push(await fleet.stop(replica))
    }
    await fleet.start(replica.slot)
  }

  async function run(): Promise<void> {
    while (!hasEnded) {
      if (kind === 'redis' && redis) await killRedis(redis)
      else if (kind === 'none') return
      else await endProcess()
    }
  }

  const running = run()
  return {
    async end() {
      hasEnded = true
      await running
    },
    figures(): Readonly<Record<string, string | number>> {
      switch (kind) {
        case 'none':
          return {}
        case 'redis':
          return { 'Redis killed and restarted': counts.redisKilled }
        case 'kill':
          return { 'processes killed': counts.killed }
        case 'restart':
          return { 'processes restarted': counts.stopped, 'exit codes': [...new Set(counts.exitCodes)].join(', ') }
      }
    }
  }
}
