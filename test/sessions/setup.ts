// Sets up a login, a provider, a clock and a log for a test of session refreshes in either mode. The stored sessions are in
// memory. A test can add more processes that use the same stored sessions, and can cut the connection of a process.

import { type Metrics, noMetrics } from '#src/base/metrics.js'
import type { Identity, SessionRecord } from '#src/cookie/session-record.js'
import type { Access } from '#src/login/access.js'
import { createEvidence } from '#src/login/evidence.js'
import type { Mode } from '#src/login/mode.js'
import { createDualMode, createSingleMode } from '#src/login/mode.js'
import { createRefreshes } from '#src/login/refreshes.js'
import type { ModeDependencies } from '#src/login/token-requests.js'
import { type Cells, type Message, StoreUnavailableError } from '#src/sessions/cells.js'
import { createSessions, type Sessions } from '#src/sessions/create-sessions.js'
import type { SessionKey, Stores } from '#src/sessions/index.js'
import { createMemoryCells } from '#src/sessions/memory-cells.js'
import type { Cell } from '#src/sessions/transitions.js'
import { type Clock, createClock } from '../helpers/clock.js'
import { collectLogs } from '../helpers/logs.js'
import type { ModeName } from '../helpers/modes.js'
import { createFakeIdp, type FakeIdpOptions } from '../login/fake-idp.js'

/** The number of token requests of one complete refresh. */
export const grantsOf: Readonly<Record<ModeName, number>> = { single: 1, dual: 2 }

export const createMode: Readonly<Record<ModeName, (dependencies: ModeDependencies) => Mode>> = {
  single: dependencies => createSingleMode({ scopes: ['data:read'] }, dependencies),
  dual: dependencies =>
    createDualMode(
      { internalTokenScopes: ['data:read', 'viewables:read'], publicTokenScopes: ['viewables:read'] },
      dependencies
    )
}

export type SessionCells = Cells<Cell<SessionRecord>, SessionKey>

/** Returns the memory of a test that stands for Redis, and `connect`, which creates the store of one more process. */
export function createSharedStore(
  clock: Clock,
  {
    recoveryMs = 0,
    maxLifetimeMs
  }: { readonly recoveryMs?: number | undefined; readonly maxLifetimeMs?: number | undefined } = {}
) {
  const lifetimeMs = 2 * 86_400_000
  const memory = createMemoryCells<SessionRecord>(clock.now, () => lifetimeMs)
  const receivers = new Set<(message: Message) => void>()
  let processes = 0

  function publish(message: Message | undefined): void {
    if (message) for (const receive of receivers) receive(message)
  }

  const cells: SessionCells = {
    ...memory,
    async swap(key, expected, next, options) {
      const swapped = await memory.swap(key, expected, next, options)
      if (swapped.isDone) publish(options.message)
      return swapped
    }
  }

  return {
    cells,
    /** @param change changes the cells of this process */
    connect(
      change: (cells: SessionCells) => SessionCells = cells => cells,
      revoke: (token: string) => void = () => {}
    ) {
      let isAway = false
      let connectedAt: number | undefined
      const owner = `process ${++processes}`
      const sessions = createSessions({
        cells: change(connectedCells(cells, () => isAway)),
        clock,
        me: () => ({ owner }),
        hostSlots: { isDead: async () => false },
        recoveryMs,
        connectedAt: () => connectedAt,
        publish: async message => (isAway ? undefined : publish(message)),
        revoke,
        lifetimeMs,
        maxLifetimeMs
      })
      receivers.add(message => isAway || sessions.receive(message))
      return {
        sessions,
        /** From now on, no command and no message gets through. */
        disconnect() {
          isAway = true
        },
        /** Connects again. The process stores again what it remembers. */
        async reconnect() {
          isAway = false
          connectedAt = clock.monotonic()
          await sessions.restoreAll()
        }
      }
    }
  }
}

/** The parts of a store for a server. Without Redis, a process has no host slot. */
export function storesOf(sessions: Sessions, { close = async () => {} } = {}): Stores {
  const hostSlots = {
    me: () => ({ owner: '' }),
    start() {},
    announce: async () => {},
    isDead: async () => false,
    close() {}
  }
  return { sessions, userSessions: undefined, hostSlots, status: () => 'off', isStarting: () => false, close }
}

/** Cells that fail as those of a Redis that cannot be used. */
function connectedCells(cells: SessionCells, isAway: () => boolean): SessionCells {
  function requireConnection(): void {
    if (isAway()) throw new StoreUnavailableError('redis')
  }

  return {
    now: cells.now,
    async read(key, isWhole) {
      requireConnection()
      return cells.read(key, isWhole)
    },
    async swap(...parameters) {
      requireConnection()
      return cells.swap(...parameters)
    }
  }
}

export interface RefreshOptions extends FakeIdpOptions {
  readonly beforeExpirySeconds?: number
  /** The seconds that pass after the login. */
  readonly afterSeconds?: number
  readonly access?: Access
  readonly identity?: Identity
  readonly recoveryMs?: number
}

/** What a process does differently. */
export interface ProcessChanges {
  readonly cells?: (cells: SessionCells) => SessionCells
  readonly sessions?: (sessions: Sessions) => Sessions
}

/** Like `setUpRefresh`, but the tokens of the session have expired. */
export function setUpExpired(name: ModeName, options: RefreshOptions = {}) {
  return setUpRefresh(name, { ...options, afterSeconds: 3601 })
}

export async function setUpRefresh(name: ModeName, options: RefreshOptions = {}) {
  const { beforeExpirySeconds = 0, afterSeconds = 0, access, identity, recoveryMs, ...idpOptions } = options
  const clock = createClock(1_700_000_000_000)
  const idp = createFakeIdp(idpOptions)
  const mode = createMode[name]({ idp, clientId: 'our-client', keepsIdToken: false, now: clock.now })
  const logs = await collectLogs()
  const shared = createSharedStore(clock, { recoveryMs })
  /** The numbers of the events in the metrics. */
  const counted = { waitedSeconds: [] as number[], refreshes: [] as string[] }
  const metrics: Metrics = {
    ...noMetrics,
    count: (_name, labels) => void counted.refreshes.push(String((labels as { outcome?: string }).outcome)),
    observe: (_name, seconds) => void counted.waitedSeconds.push(seconds)
  }
  let logins = 0

  /** Starts one more process that uses the same stored sessions, with changes to its cells or sessions. */
  function addProcessWith(changes: ProcessChanges) {
    const connected = shared.connect(changes.cells, token => void idp.revokeRefreshToken(token))
    const sessions = changes.sessions?.(connected.sessions) ?? connected.sessions
    const margins = { beforeExpirySeconds, jitterSeconds: 0 }
    const refreshing = createRefreshes({
      ...{ mode, idp, sessions, clock, access, metrics, evidence: createEvidence() },
      ...margins,
      timeoutSeconds: 10
    })
    /** Returns the session for a request with the given session cookie. */
    const current = (record: SessionRecord) => refreshing.current(record, () => logs.log)
    return {
      ...connected,
      sessions,
      refreshing,
      current,
      /** Returns the newest session of a cookie, without a refresh. */
      async newest(record: SessionRecord) {
        const found = await sessions.current(record)
        return found.kind === 'over' ? undefined : found.record
      },
      /** Like `current`, but throws unless the session is usable. Returns the session that the browser has afterwards. */
      async live(record: SessionRecord) {
        const session = await current(record)
        if (session.kind !== 'live') throw new Error(`the session is ${session.kind}`)
        return session.record
      },
      /** Like `current`, but throws unless the session has to be refreshed and that is not possible now. */
      async unavailable(record: SessionRecord) {
        const session = await current(record)
        if (session.kind !== 'unavailable') throw new Error(`the session is ${session.kind}`)
        if (!session.record) throw new Error('the session was not read')
        return { ...session, record: session.record }
      },
      async logout(record: SessionRecord) {
        await sessions.end(record)
      }
    }
  }

  /** Returns the session of one more login. */
  async function login(id: string): Promise<SessionRecord> {
    logins++
    const timeoutMs = 60_000
    const exchanged = await mode.exchangeCode({ code: id, codeVerifier: 'v', nonce: 'n', timeoutMs })
    const { state } =
      exchanged.state.kind === 'complete' ? exchanged : await mode.nextRequest(exchanged.state, timeoutMs)
    const { fields } = state
    const moments = { loggedInAt: clock.now(), issuedAt: clock.now() }
    const content = { id, rev: 1, ...moments, fields: Object.freeze(fields), ...(identity && { identity }) }
    const record = Object.freeze({ kind: 'complete' as const, ...content })
    const entry = { rev: 1, hasRecord: true }
    const options = { now: clock.now(), message: undefined, mayFail: false }
    await shared.cells.swap({ id }, await shared.cells.read({ id }, false), { entry, record }, options)
    return record
  }

  /** Starts one more process that uses the same stored sessions. */
  const addProcess = () => addProcessWith({})
  const record = await login('the-session-id')
  clock.advanceSeconds(afterSeconds)
  return {
    ...addProcess(),
    idp,
    clock,
    logs,
    cells: shared.cells,
    /** The session that a browser has after its login. */
    record,
    counted,
    addProcess,
    addProcessWith,
    login,
    /** The number of token requests that were no part of a login. */
    refreshes: () => idp.grants.length - logins * grantsOf[name],
    /** The log entries of the events `refresh_succeeded` and `refresh_failed`. */
    refreshLines: () => logs.entries.filter(({ event }) => event === 'refresh_succeeded' || event === 'refresh_failed')
  }
}
