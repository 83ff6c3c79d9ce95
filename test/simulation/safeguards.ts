// The safeguards of the design, each with the change that switches it off. Without any of them, logins are lost, or users get
// in after a logout, or wait for a dead process.

import type { Clock } from '#src/base/clock.js'
import type { SessionRecord } from '#src/cookie/session-record.js'
import type { Sessions } from '#src/sessions/create-sessions.js'
import type { ProcessMemory } from '#src/sessions/memory.js'
import type { Grant, Result } from '#src/sessions/session-types.js'
import type { Cell, RefusalSeries, TIMES } from '#src/sessions/transitions.js'
import { accessTokenOf } from './provider.js'
import type { Fault, Schedule } from './schedule.js'
import type { Replica, Simulation } from './simulation.js'

/** What a simulation changes. An empty object changes nothing. */
export interface Safeguard {
  readonly name: string
  /** The faults against which it helps. */
  readonly faults?: readonly Fault[]
  /** Changes to the schedule, if only some sessions need the safeguard. */
  readonly schedule?: Partial<Schedule>
  readonly times?: Partial<typeof TIMES>
  /** Changes the clock of a process. */
  readonly clock?: (clock: Clock, process: number) => Clock
  readonly comparesNothing?: boolean
  readonly checksNoTime?: boolean
  readonly dropsLateResponses?: boolean
  readonly sharesHostSlots?: boolean
  readonly namesNoHostSlot?: boolean
  readonly skipsRecovery?: boolean
  readonly namesUnsaved?: boolean
  /** Changes what a swap stores, or ignores it. */
  readonly change?: (simulation: Simulation, id: string, next: Cell<SessionRecord>) => Cell<SessionRecord> | 'ignore'
  readonly memory?: (memory: ProcessMemory) => ProcessMemory
  readonly sessions?: (sessions: Sessions, replica: Replica) => Sessions
}

export const ALL_SAFEGUARDS: Safeguard = { name: 'none is switched off' }

export const safeguards: readonly Safeguard[] = [
  { name: 'a write replaces only the cell that its rule has seen', faults: ['slow provider'], comparesNothing: true },
  {
    name: 'a write is refused if the time of its rule is wrong',
    faults: ['slow provider'],
    // After 20 seconds, the clocks of half of the processes jump.
    clock: (clock, process) => ({
      ...clock,
      now: () => clock.now() + (process % 2 && clock.monotonic() > 20_000 ? 120_000 : 0)
    }),
    checksNoTime: true
  },
  { name: 'the lease is longer than the token request', faults: ['slow provider'], times: { leaseMs: 20_000 } },
  {
    name: 'elapsed time is measured with the system clock, too',
    faults: ['suspend after grant'],
    clock: clock => ({ ...clock, now: () => 1_700_000_000_000 + clock.monotonic() })
  },
  {
    name: 'a lease is at most a second old when its token is sent',
    faults: ['suspend after grant'],
    times: { freshMs: Number.POSITIVE_INFINITY }
  },
  {
    name: 'a response that arrived in time is used',
    faults: ['stop while sending', 'slow provider'],
    dropsLateResponses: true
  },
  { name: 'a process has its host slot until it ends', faults: ['drain', 'slow provider'], sharesHostSlots: true },
  {
    name: 'a process waits for the recovery time after each connection',
    faults: ['two masters', 'slow provider'],
    skipsRecovery: true
  },
  {
    name: 'every process stores again what it remembers',
    faults: ['promote', 'slow provider'],
    sessions: sessions => ({ ...sessions, async restoreAll() {}, receive() {} })
  },
  {
    name: 'logouts are restored',
    faults: ['promote after logout', 'drain'],
    change: (simulation, id, next) => (next.entry.isFinal && wasStored(simulation, id) ? 'ignore' : next)
  },
  {
    name: 'an ambiguous refusal ends a session only after it was repeated for some time',
    faults: ['refusing provider'],
    sessions: withRefusals((series, name) => (name === 'ambiguous' ? { ...series, since: 0, refusals: 3 } : series))
  },
  {
    name: 'a refusal that blames the client ends a session only after it was repeated for some time',
    faults: ['blaming provider'],
    sessions: withRefusals(series => ({ ...series, since: 0, refusals: 5 }))
  },
  {
    name: 'the access tokens of a response are not stored before the check of the access list',
    faults: ['kill while checking'],
    schedule: { isGuarded: true, mode: 'dual' },
    sessions: withWork(send => async grant => {
      const result = await send(grant)
      if (result.kind !== 'unfinished' || !result.record) return result
      const { isUnchecked, fields, ...record } = result.record
      const { refresh_token } = fields
      const internal_token = accessTokenOf(refresh_token)
      const half = { kind: 'half-refreshed', internalExpiresAt: fields.expires_at + 60_000 } as const
      return { ...result, record: { ...record, ...half, fields: { ...fields, internal_token } } }
    })
  },
  {
    name: 'the newest session that this process knows comes before that of the cookie',
    faults: ['flush', 'slow provider'],
    schedule: { sessionStore: 'cookie' },
    memory(memory) {
      const noted = new Map<string, SessionRecord>()
      return {
        ...memory,
        note(session) {
          if ('fields' in session) noted.set(session.id, session)
          memory.note(session)
        },
        newest: id => noted.get(id) ?? memory.newest(id),
        known(id) {
          const record = noted.get(id)
          return record ? { rev: record.rev, record, recordRev: record.rev } : memory.known(id)
        }
      }
    }
  }
]

type SimpleWork = (grant: Grant) => Promise<Result>

/** Returns a function that changes the work which runs under the leases of a process. */
function withWork(change: (send: SimpleWork) => SimpleWork) {
  return (sessions: Sessions): Sessions => ({
    ...sessions,
    underLease: (session, request, work) =>
      sessions.underLease(session, request, (given, grant) => change(grant => work(given, grant))(grant))
  })
}

/** Returns a function that changes the series of refusals of a refresh token. */
function withRefusals(change: (series: RefusalSeries, name: string) => RefusalSeries) {
  return withWork(send => grant => send({ ...grant, refusedAgain: name => change(grant.refusedAgain(name), name) }))
}

const storedLogouts = new WeakMap<Simulation, Set<string>>()

/** True from the second time on that a logout is stored. */
function wasStored(simulation: Simulation, id: string): boolean {
  const ids = storedLogouts.get(simulation) ?? new Set()
  storedLogouts.set(simulation, ids)
  if (ids.has(id)) return true
  ids.add(id)
  return false
}
