// What the parts of a simulation share. One seed determines everything that happens in it.

import type { Clock } from '#src/base/clock.js'
import type { Refreshes } from '#src/login/refreshes.js'
import type { ProcessSessions } from '#src/sessions/create-sessions.js'
import type { SimulatedProvider } from './provider.js'
import type { SimulatedRedis } from './redis.js'
import type { Safeguard } from './safeguards.js'
import type { SimulatedProcess, World } from './world.js'

export type Fault =
  | 'slow provider'
  | 'busy provider'
  | 'failing provider'
  // The provider refuses all refresh tokens in an ambiguous way for a while.
  | 'refusing provider'
  // The provider blames the client whenever it gets a token of one user, for a while.
  | 'blaming provider'
  | 'lost response'
  | 'stop'
  | 'suspend'
  | 'stop for long'
  | 'suspend for long'
  | 'kill'
  | 'drain'
  | 'cut off'
  | 'kill Redis'
  | 'stop Redis'
  | 'slow Redis'
  | 'flush'
  | 'evict'
  | 'promote'
  | 'two masters'
  // These faults strike at a moment that is chosen: after the lease was granted, while a request is in progress, at the
  // storing of a response, during the check of the access list, and directly after a logout.
  | 'stop after grant'
  | 'suspend after grant'
  | 'stop while sending'
  | 'kill while checking'
  | 'promote after logout'
  | 'promote after commit'

export interface Schedule {
  readonly seed: number
  readonly mode: 'single' | 'dual'
  /** Where the sessions are kept, as in the setting `session.store`. */
  readonly sessionStore: 'cookie' | 'redis'
  /** True if an access list is checked, from which one account is removed. */
  readonly isGuarded: boolean
  readonly faults: readonly Fault[]
}

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
  readonly sessions: ProcessSessions
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
