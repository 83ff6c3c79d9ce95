// One process of the server: the production code of logins, refreshes, modes and the session store.
import type { Logger } from 'pino'
import { createCodeExchanges } from '#src/login/code-exchange.js'
import { createDualMode } from '#src/modes/dual.js'
import { createSingleMode } from '#src/modes/single.js'
import { createRefreshes, type Refreshes } from '#src/refresh/index.js'
import type { Refreshed } from '#src/refresh/refresh.js'
import type { Keyring } from '#src/session/keyring.js'
import type { CookieSession, SessionRecord } from '#src/session/record.js'
import { createRedisStore } from '#src/store/index.js'
import type { ScriptTimes } from '#src/store/scripts.js'
import type { SessionStore } from '#src/store/session-store.js'
import type { SimulatedProvider } from './provider.js'
import type { SimulatedRedis } from './redis.js'
import type { SimulatedProcess } from './world.js'

export interface SimulatedServer {
  readonly process: SimulatedProcess
  readonly store: SessionStore
  /** Completes the login with this authorization code. Returns the session, or undefined if the login failed. */
  logIn(code: string): Promise<SessionRecord | undefined>
  /** Answers a request with the cookie of a session. */
  request(cookie: CookieSession): Promise<Refreshed>
  /** Stores a field that a handler has added to a session in Redis. Returns undefined if the session has ended. */
  change(record: SessionRecord, field: string): Promise<SessionRecord | undefined>
  logOut(cookie: CookieSession): Promise<void>
}

export interface ServerParts {
  readonly process: SimulatedProcess
  readonly modeName: 'single' | 'dual'
  /** The place of the sessions, as in the setting `session.store`. */
  readonly sessionStore: 'cookie' | 'redis'
  readonly provider: SimulatedProvider
  readonly redis: SimulatedRedis
  readonly keyring: Keyring
  readonly times: ScriptTimes
  readonly log: Logger
  readonly marginSeconds: number
  /** Changes the clock or the store, to switch a safeguard off. */
  readonly sabotage: Sabotage
}

export interface Sabotage {
  clock?(clock: SimulatedProcess['clock']): SimulatedProcess['clock']
  store?(store: SessionStore): SessionStore
}

const TIMEOUT_SECONDS = 10

/** Returns the key of a session in Redis. */
export function keyOf(id: string): string {
  return `the key of ${id}`
}

export function createServer(parts: ServerParts): SimulatedServer {
  const { process, modeName, sessionStore, provider, redis, keyring, times, log, marginSeconds, sabotage } = parts
  const clock = sabotage.clock?.(process.clock) ?? process.clock
  const idp = provider.clientOf(process)
  const modeParts = { idp, clientId: 'client', pkce: true, keepsIdToken: false, now: clock.now }
  const mode =
    modeName === 'single'
      ? createSingleMode({ scopes: ['read'] }, modeParts)
      : createDualMode({ internalScopes: ['read', 'view'], publicScopes: ['view'] }, modeParts)
  const plain = createRedisStore({
    open: events => redis.open(process, events),
    prefix: 'simulation:',
    times,
    keyring,
    clock,
    log
  })
  const store = sabotage.store?.(plain) ?? plain
  const shared = { mode, idp, store, clock, timeoutSeconds: TIMEOUT_SECONDS }
  const refreshes: Refreshes = createRefreshes({ ...shared, marginSeconds, spreadSeconds: 0 })
  const exchanges = createCodeExchanges({ ...shared, sessionStore, access: undefined })

  return {
    process,
    store,
    async logIn(code) {
      const derived = { id: code, codeVerifier: '', nonce: '', sessionKey: keyOf(code) }
      const transaction = { ...derived, returnTo: '/', expiresAt: clock.now() + 600_000 }
      const exchange = await exchanges.exchange(transaction, code).catch(() => undefined)
      return exchange && 'record' in exchange ? exchange.record : undefined
    },
    request: cookie => refreshes.current(cookie, () => log),
    change: (record, field) => refreshes.change(record, { ...record.fields, field }),
    logOut: async cookie => void (await store.logOut(cookie))
  }
}
