// Sets up a login, a provider, a clock and a log for a test of session refreshes in either mode.

import type { Log } from '#src/auth/log.js'
import { markLoggedOut } from '#src/auth/logout-marks.js'
import { createRefreshes, type RefreshedSession, type Refreshes } from '#src/auth/refresh.js'
import type { Coordination } from '#src/coordination/coordination.js'
import { createMemoryCoordination } from '#src/coordination/memory.js'
import { createDualMode } from '#src/modes/dual.js'
import type { ModeParts } from '#src/modes/grants.js'
import type { Mode } from '#src/modes/mode.js'
import { createSingleMode } from '#src/modes/single.js'
import type { SessionRecord } from '#src/session/record.js'
import { type Clock, createClock } from '../helpers/clock.js'
import { type CollectedLogs, collectLogs, type LogEntry } from '../helpers/logs.js'
import { createFakeIdp, type FakeIdp, type FakeIdpOptions } from '../modes/fake-idp.js'

export const modeNames = ['single', 'dual'] as const
export type ModeName = (typeof modeNames)[number]

/** The number of token requests of one complete refresh. */
export const grantsOf: Readonly<Record<ModeName, number>> = { single: 1, dual: 2 }

const createMode: Readonly<Record<ModeName, (parts: ModeParts) => Mode>> = {
  single: parts => createSingleMode({ scopes: ['data:read'] }, parts),
  dual: parts =>
    createDualMode({ internalScopes: ['data:read', 'viewables:read'], publicScopes: ['viewables:read'] }, parts)
}

export interface RefreshSetUp {
  readonly idp: FakeIdp
  readonly mode: Mode
  readonly clock: Clock
  readonly coordination: Coordination
  readonly refreshing: Refreshes
  readonly logs: CollectedLogs
  /** The session that a browser has after its login. */
  readonly record: SessionRecord
  /** Returns the session for a request with the given session cookie. */
  current(record: SessionRecord): Promise<RefreshedSession>
  /** Like `current`, but throws unless the session is usable. Returns the session that the browser has afterwards. */
  live(record: SessionRecord): Promise<SessionRecord>
  /** Like `current`, but throws unless the session has to be refreshed and that is not possible now. */
  unavailable(record: SessionRecord): Promise<Extract<RefreshedSession, { kind: 'unavailable' }>>
  logout(record: SessionRecord): Promise<void>
  /** The number of token requests since the login. */
  refreshes(): number
  /** The log entries of the event `refresh`. */
  refreshLines(): readonly LogEntry[]
}

/** Does what every request does: determines the state of its session, and refreshes the session if it is due. */
export async function currentSession(
  refreshing: Refreshes,
  record: SessionRecord,
  log: Log
): Promise<RefreshedSession> {
  const state = await refreshing.stateOf(record)
  if (state === 'loggedOut') return { kind: 'loggedOut' }
  return state === 'due' ? refreshing.refresh(record, log) : { kind: 'live', record }
}

export interface RefreshOptions extends FakeIdpOptions {
  readonly marginSeconds?: number
  readonly spreadSeconds?: number
  readonly keepSeconds?: number
}

export async function setUpRefresh(name: ModeName, options: RefreshOptions = {}): Promise<RefreshSetUp> {
  const { marginSeconds = 0, spreadSeconds = 0, keepSeconds = 60, ...idpOptions } = options
  const clock = createClock(1_700_000_000_000)
  const idp = createFakeIdp(idpOptions)
  const mode = createMode[name]({ idp, clientId: 'our-client', pkce: true, keepsIdToken: false, now: clock.now })
  const coordination = createMemoryCoordination(clock.now)
  const refreshing = createRefreshes({
    mode,
    idp,
    coordination,
    now: clock.now,
    marginSeconds,
    spreadSeconds,
    keepSeconds,
    maxAgeSeconds: 86_400
  })
  const logs = await collectLogs()
  const { fields } = await mode.exchangeCode({ code: 'c', codeVerifier: 'v', nonce: 'n' })
  const moments = { loggedInAt: clock.now(), issuedAt: clock.now() }
  const record = Object.freeze({ id: 'the-session-id', ...moments, fields: Object.freeze(fields) })
  const current = (record: SessionRecord) => currentSession(refreshing, record, logs.log)
  return {
    idp,
    mode,
    clock,
    coordination,
    refreshing,
    logs,
    record,
    current,
    async live(record) {
      const session = await current(record)
      if (session.kind !== 'live') throw new Error(`the session is ${session.kind}`)
      return session.record
    },
    async unavailable(record) {
      const session = await current(record)
      if (session.kind !== 'unavailable') throw new Error(`the session is ${session.kind}`)
      return session
    },
    logout: record => markLoggedOut(coordination, record.id, 86_400_000),
    refreshes: () => idp.grants.length - grantsOf[name],
    refreshLines: () => logs.entries.filter(({ event }) => event === 'refresh')
  }
}
