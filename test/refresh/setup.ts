// Sets up a login, a provider, a clock and a log for a test of session refreshes in either mode. The stored sessions are in
// memory. A test can add more processes that use the same stored sessions, and can cut the connection of a process.

import { createDualMode } from '#src/modes/dual.js'
import type { ModeParts } from '#src/modes/grants.js'
import type { Mode, TokenState } from '#src/modes/mode.js'
import { createSingleMode } from '#src/modes/single.js'
import { createRefreshes, type Refreshes } from '#src/refresh/index.js'
import type { Refreshed } from '#src/refresh/refresh.js'
import type { SessionRecord } from '#src/session/record.js'
import { createMemoryScripts } from '#src/store/memory-scripts.js'
import type { Message } from '#src/store/messages.js'
import { createProcessStore, type StoreEvents } from '#src/store/process-store.js'
import { RedisUnavailableError } from '#src/store/redis-errors.js'
import { LOCK_MS, type ScriptTimes, type SessionScripts } from '#src/store/scripts.js'
import type { SessionStore } from '#src/store/session-store.js'
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

/** The memory of a test that stands for Redis, and the connections of all processes to it. */
export interface SharedStore {
  readonly scripts: SessionScripts<SessionRecord>
  /** Creates the store of one more process. */
  connect(): ConnectedStore
}

export interface ConnectedStore {
  readonly store: SessionStore
  /** From now on, no script and no message gets through. */
  disconnect(): void
  /** Connects again. The process stores again what it remembers, and its earlier locks are not used to send a token. */
  reconnect(): Promise<void>
}

export function createSharedStore(clock: Clock, { keepSeconds = 60, settleMs = 0 } = {}): SharedStore {
  const times: ScriptTimes = {
    entryMs: 2 * 86_400_000,
    loginMs: 900_000,
    keepMs: keepSeconds * 1000,
    lockMs: LOCK_MS,
    settleMs
  }
  const scripts = createMemoryScripts<SessionRecord>(clock.now, times)
  const receivers = new Set<StoreEvents['receive']>()

  return {
    scripts,
    connect() {
      let isAway = false
      let generation = 0
      let restore = async () => {}
      const log = { error() {} }
      const store = createProcessStore({
        kind: 'redis',
        scripts: connectedScripts(scripts, () => isAway),
        clock,
        times,
        log,
        connect(events) {
          restore = events.restore
          const receive = (message: Message) => isAway || events.receive(message)
          receivers.add(receive as StoreEvents['receive'])
          return {
            isSettled: () => !isAway,
            generation: () => generation,
            isAway: () => isAway,
            async publish(message) {
              if (isAway) return false
              for (const receiver of receivers) receiver(message)
              return true
            },
            async close() {}
          }
        }
      })
      return {
        store,
        disconnect() {
          isAway = true
        },
        async reconnect() {
          isAway = false
          generation++
          await restore()
        }
      }
    }
  }
}

/** Scripts that fail as those of a Redis that cannot be used. */
function connectedScripts<Stored>(scripts: SessionScripts<Stored>, isAway: () => boolean): SessionScripts<Stored> {
  const names = ['look', 'take', 'save', 'seen', 'unseen', 'hold', 'out'] as const
  const connected = names.map(name => [
    name,
    async (...parameters: unknown[]) => {
      if (isAway()) throw new RedisUnavailableError('the test has cut the connection')
      return (scripts[name] as (...all: unknown[]) => Promise<unknown>)(...parameters)
    }
  ])
  return Object.fromEntries(connected) as SessionScripts<Stored>
}

/** One process with its own store, which is connected to the shared store. */
export interface RefreshProcess extends ConnectedStore {
  readonly refreshing: Refreshes
  /** Returns the session for a request with the given session cookie. */
  current(record: SessionRecord): Promise<Refreshed>
  /** Like `current`, but throws unless the session is usable. Returns the session that the browser has afterwards. */
  live(record: SessionRecord): Promise<SessionRecord>
  /** Like `current`, but throws unless the session has to be refreshed and that is not possible now. */
  unavailable(record: SessionRecord): Promise<Extract<Refreshed, { kind: 'unavailable' }>>
  logout(record: SessionRecord): Promise<void>
}

export interface RefreshSetUp extends RefreshProcess {
  readonly idp: FakeIdp
  readonly mode: Mode
  readonly clock: Clock
  readonly shared: SharedStore
  readonly logs: CollectedLogs
  /** The session that a browser has after its login. */
  readonly record: SessionRecord
  /** The numbers of the events in the metrics. */
  readonly counted: { stale: number; readonly waitedSeconds: number[] }
  /** Starts one more process that uses the same stored sessions. */
  addProcess(): RefreshProcess
  /** Starts one more process whose store was changed by `change`. */
  addProcessWith(change: (store: SessionStore) => SessionStore): RefreshProcess
  /** Returns the session of one more login. */
  login(id: string): Promise<SessionRecord>
  /** The number of token requests that were no part of a login. */
  refreshes(): number
  /** The log entries of the event `refresh`. */
  refreshLines(): readonly LogEntry[]
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
  const logs = await collectLogs()
  const shared = createSharedStore(clock, { keepSeconds })
  const counted = { stale: 0, waitedSeconds: [] as number[] }
  const metrics = {
    refreshEnded() {},
    refreshWaited: (seconds: number) => counted.waitedSeconds.push(seconds),
    staleCookie() {
      counted.stale++
    }
  }
  let logins = 0

  function addProcessWith(change: (store: SessionStore) => SessionStore): RefreshProcess {
    const connected = shared.connect()
    const store = change(connected.store)
    const margins = { marginSeconds, spreadSeconds }
    const refreshing = createRefreshes({ mode, idp, store, clock, timeoutSeconds: 10, ...margins, metrics })
    const current = (record: SessionRecord) => refreshing.current(record, () => logs.log)
    return {
      ...connected,
      store,
      refreshing,
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
      async logout(record) {
        await store.logOut(record)
      }
    }
  }

  async function login(id: string): Promise<SessionRecord> {
    logins++
    const timeoutMs = 60_000
    const taken = await shared.scripts.take(id, { rev: 0, owner: 'the login', reported: undefined, newLoss: id })
    if (taken.kind !== 'mine') throw new Error(`the login is ${taken.kind}`)
    const exchanged = await mode.exchangeCode({ code: id, codeVerifier: 'v', nonce: 'n', timeoutMs })
    const { state } = exchanged.isComplete ? exchanged : await mode.nextRequest(exchanged.state, timeoutMs)
    const { fields } = state satisfies TokenState
    const moments = { loggedInAt: clock.now(), issuedAt: clock.now() }
    const record = Object.freeze({ id, rev: 1, ...moments, fields: Object.freeze(fields) })
    const outcome = { kind: 'tokens', record, keepsLock: false, pauseMs: 0 } as const
    await shared.scripts.save(id, { rev: 1, owner: 'the login', outcome, newLoss: id })
    return record
  }

  const addProcess = () => addProcessWith(store => store)
  return {
    ...addProcess(),
    idp,
    mode,
    clock,
    shared,
    logs,
    record: await login('the-session-id'),
    counted,
    addProcess,
    addProcessWith,
    login,
    refreshes: () => idp.grants.length - logins * grantsOf[name],
    refreshLines: () => logs.entries.filter(({ event }) => event === 'refresh')
  }
}
