// What the parts of a simulation share. One seed determines everything that happens in it.

import type { Clock } from '#src/base/clock.js'
import type { Refreshes } from '#src/login/refreshes.js'
import type { Sessions } from '#src/sessions/create-sessions.js'
import type { SimulatedProvider } from './provider.js'
import type { SimulatedRedis } from './redis.js'
import type { Safeguard } from './safeguards.js'
import type { Fault, Schedule } from './schedule.js'
import type { SimulatedProcess, World } from './world.js'

/** A time in which a process could not work. */
export interface Trouble {
  readonly from: number
  to: number
  readonly kind: string
}

export interface Replica {
  readonly number: number
  /** The host slot, which only one process at a time can have. */
  readonly hostSlot: string
  readonly owner: string
  readonly process: SimulatedProcess
  readonly clock: Clock
  readonly sessions: Sessions
  readonly refreshes: Refreshes
  readonly startedAt: number
  readonly troubles: Trouble[]
  /** False if the process is draining or has ended. Refreshes in progress continue. */
  listens: boolean
  isCut: boolean
  /** True while there is a connection to `redis`. */
  isConnected: boolean
  redis: SimulatedRedis['master']
  /** Counts the connections, so that replies and messages of an earlier connection are dropped. */
  connection: number
  connectedAt: number | undefined
  /** When the process got the socket of its host slot. */
  since: number | undefined
  /** The number of refreshes in progress. */
  running: number
  wasTroubledBetween(from: number, to: number): Trouble | undefined
}

export interface Simulation {
  readonly schedule: Schedule
  readonly safeguard: Safeguard
  readonly world: World
  readonly startedAt: number
  readonly replicas: Replica[]
  readonly redis: SimulatedRedis
  readonly provider: SimulatedProvider
  readonly recoveryMs: number
  /** What must never happen: lost logins, refresh tokens that were used twice, requests that got in after a logout. */
  readonly violations: Set<string>
  /** The times at which Redis lost data. */
  readonly losses: number[]
  /** When Redis was disturbed last. */
  disturbedAt: number
  has(...faults: readonly Fault[]): boolean
}
