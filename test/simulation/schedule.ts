// What a seed decides about a simulation.

export type Fault = (typeof SINGLE)[number][number]

export interface Schedule {
  readonly seed: number
  readonly mode: 'single' | 'dual'
  /** Where the sessions are kept, as in the setting `session.store`. */
  readonly sessionStore: 'cookie' | 'redis'
  /** True if an access list is checked, from which one account is removed. */
  readonly isGuarded: boolean
  readonly faults: readonly Fault[]
}

/** Each kind of fault is in one of these lists at least. */
const SINGLE = [
  [],
  ['slow provider'],
  ['busy provider'],
  ['failing provider'],
  // The provider refuses all refresh tokens in an ambiguous way for a while.
  ['refusing provider'],
  // The provider blames the client whenever it gets a token of one user, for a while.
  ['blaming provider'],
  ['lost response'],
  ['stop'],
  ['suspend'],
  ['stop for long', 'slow provider'],
  ['suspend for long'],
  ['kill'],
  ['kill', 'slow provider'],
  ['drain', 'slow provider'],
  ['cut off'],
  ['kill Redis'],
  ['stop Redis'],
  ['slow Redis'],
  ['flush'],
  ['flush', 'slow provider'],
  ['evict', 'slow provider'],
  ['promote'],
  ['promote', 'slow provider'],
  ['two masters'],
  ['two masters', 'slow provider'],
  // These strike at a moment that is chosen: after the lease was granted, while a request is in progress, directly after a logout, at the
  // storing of a response, and during the check of the access list.
  ['stop after grant'],
  ['suspend after grant'],
  ['stop while sending', 'slow provider'],
  ['promote after logout'],
  ['promote after commit', 'slow provider'],
  ['kill while checking']
] as const
const MIXED: readonly (readonly Fault[])[] = [
  [
    'slow provider',
    'busy provider',
    'failing provider',
    'stop',
    'suspend',
    'kill',
    'drain',
    'kill Redis',
    'slow Redis'
  ],
  ['slow provider', 'flush', 'stop', 'suspend', 'evict'],
  ['slow provider', 'promote', 'stop', 'kill Redis', 'busy provider', 'kill'],
  ['cut off', 'kill Redis', 'stop Redis', 'stop', 'suspend', 'slow provider'],
  ['two masters', 'promote', 'slow provider', 'drain', 'slow Redis'],
  ['kill', 'drain', 'cut off', 'slow provider', 'flush', 'promote'],
  ['kill while checking', 'kill', 'stop', 'slow Redis', 'promote'],
  ['refusing provider', 'blaming provider', 'slow provider', 'failing provider', 'kill', 'kill Redis']
]

/** Returns the schedule of a seed. Half of the schedules have few kinds of faults, and the others combine many. */
export function scheduleOf(seed: number): Schedule {
  const number = Math.floor(seed / 4)
  const list = number % 2 === 0 ? SINGLE : MIXED
  const faults = list[Math.floor(number / 2) % list.length] as readonly Fault[]
  return {
    seed,
    mode: seed % 2 === 0 ? 'single' : 'dual',
    sessionStore: seed % 4 < 2 ? 'cookie' : 'redis',
    isGuarded: seed % 3 === 0 || faults.includes('kill while checking'),
    faults
  }
}
