/**
 * Creates the services of the server from the configuration, each one after those that it uses. All middleware gets the same
 * `Services` value, and takes from it what it needs.
 */
import { type Logger, pino } from 'pino'
import { type Clock, systemClock } from './base/clock.js'
import { type Metrics, noMetrics } from './base/metrics.js'
import { createBackground, createShutdownHooks } from './base/shutdown.js'
import type { Tracing } from './base/tracing.js'
import type { Config } from './config/settings.js'
import { createSite } from './config/site.js'
import { createKeyring } from './cookie/keyring.js'
import type { SessionRecord } from './cookie/record.js'
import { createSessionCookie } from './cookie/session-cookie.js'
import { logOptions, standardOutput } from './log.js'
import { createAccess } from './login/access.js'
import { createBeginLogin } from './login/begin-login.js'
import { createCodeExchanges } from './login/code-exchange.js'
import { createCompleteLogin } from './login/complete-login.js'
import { createLogOuts } from './login/log-out.js'
import { createMode } from './login/mode.js'
import { createProfiles } from './login/profiles.js'
import { createLoginTransactions } from './login/transaction.js'
import { createPages } from './pages/index.js'
import { createIdentityProvider, type IdentityProvider } from './provider/client.js'
import { createTransport } from './provider/transport.js'
import { createRefreshes } from './sessions/current.js'
import { createStores, type StoreOptions, type Stores } from './sessions/open-store.js'

/** The dependencies that a program can replace. */
export interface AppOptions {
  /** The clock, in milliseconds since the epoch. */
  readonly now: () => number
  readonly log: Logger
}

/** Dependencies that can be replaced only inside this package, for example by its tests. */
export interface ServiceOptions extends AppOptions {
  readonly stores: Stores
  /** The options of the store for its connection to Redis. */
  readonly redis: Pick<StoreOptions, 'open' | 'timing'>
  readonly metrics: Metrics
  readonly tracing: Tracing
  /** The clocks and timers. The function `clock.now` must be the same as `now`. */
  readonly clock: Clock
  /** The built-in demo, if it is the identity provider. */
  readonly demo: DemoProvider | undefined
}

/** The counts of the built-in demo identity provider, which the starter page of a demo shows. */
export interface DemoProvider {
  readonly calls: {
    /** The number of token requests with a refresh token. */
    readonly refreshToken: number
    /** The number of these requests whose refresh token was already spent. Each of them ended a login. */
    readonly reusedRefreshToken: number
  }
}

export type Services = ReturnType<typeof createServices>

export function createServices(config: Config, options: Partial<ServiceOptions> = {}) {
  const { now = Date.now, metrics = noMetrics, tracing, clock = { ...systemClock, now }, demo } = options
  const { log = pino(logOptions(config.log.level), standardOutput()) } = options
  const { session, platform } = config
  const { maxAgeSeconds, absoluteMaxAgeSeconds } = session
  const site = createSite(config)
  const background = createBackground()
  const hooks = createShutdownHooks()

  const transport = createTransport(platform.timeoutSeconds * 1000, { metrics, tracing })
  const provider = createIdentityProvider(platform, transport, now, problem =>
    log.warn({ event: 'endpoint_unusable' }, `the discovery document of the identity provider: ${problem}`)
  )
  // Shutdown has to wait for revocations, because otherwise a refresh token could stay valid after this process has
  // ended.
  const idp: IdentityProvider = {
    ...provider,
    revokeRefreshToken: refreshToken => background.add(provider.revokeRefreshToken(refreshToken))
  }

  const keyring = createKeyring([session.secret, ...session.previousSecrets])
  const stores = options.stores ?? createStores(config, { keyring, clock, log, tracing, ...options.redis })
  const { store, places, userSessions } = stores
  const mode = createMode(config, idp, store.now)
  // A cookie of the other mode contains the wrong tokens. Each mode has its own key, so such a cookie cannot be opened.
  const sealer = keyring.sealer(`session cookie, ${mode.name} mode`)
  const ages = { maxAgeSeconds, absoluteMaxAgeSeconds }
  const sessionCookie = createSessionCookie({ sealer, name: site.cookies.session, ...ages, now, metrics })

  const userHasher = keyring.hasher('session user')

  const access = config.access.allow && createAccess(config.access.allow, idp)
  // Refreshes and logins use the clock of the store, so that all replicas agree on the time.
  const times = { clock, now: store.now, timeoutSeconds: platform.timeoutSeconds }
  const shared = { mode, idp, store, places, userSessions, sessionCookie, access, background, metrics, log, ...times }

  const refreshes = createRefreshes({ ...shared, ...config.refresh })

  const transactions = createLoginTransactions(keyring.sealer('login state'), store.now)
  const beginLogin = createBeginLogin({ ...shared, transactions, pkce: platform.pkce, maxAgeSeconds })
  const codeExchanges = createCodeExchanges({ ...shared, sessionStore: session.store })
  const completeLogin = createCompleteLogin({ ...shared, transactions, codeExchanges, beginLogin })
  const profiles = createProfiles({ ...shared, keepSeconds: config.profile.keepSeconds })
  const { logOut, logOutEverywhere, endSessions } = createLogOuts({ ...shared, logout: config.logout, profiles })
  // The module that checks logout tokens is loaded only if `platform.backChannelLogout` is on.
  const backChannelLogout =
    userSessions &&
    import('./login/back-channel-logout.js').then(module =>
      module.createBackChannelLogout({ ...shared, userSessions, clientId: platform.clientId, endSessions })
    )
  // Without this handler, a failure before the first logout token would end the process.
  backChannelLogout?.catch(() => {})

  let isDraining = false
  const shutdown = {
    hooks,
    isDraining: () => isDraining,
    /** Makes `/readyz` respond with 503. */
    startDraining() {
      isDraining = true
    },
    /** Resolves when no revocation is in progress. */
    revocationsEnded: () => background.ended(),
    /** Resolves when no revocation, refresh or code exchange is in progress. */
    async workEnded() {
      await Promise.all([background.ended(), refreshes.ended(), codeExchanges.ended()])
      await store.saved()
    },
    /** Closes all connections. Work that has not ended is lost. */
    async close() {
      await stores.close()
      transport.close()
      await hooks.close()
    }
  }

  return {
    config,
    site,
    pages: createPages(config.pages),
    mode,
    store,
    sessionCookie,
    /**
     * Returns a string that is the same for all sessions of a user, and does not reveal who the user is. Without the scope
     * `openid`, the user is unknown, so each session has a different string. While a secret is being replaced, the string has one
     * word for each secret, so that it shares a word with the strings of replicas that know only one of the secrets.
     */
    sessionUser({ id, identity }: SessionRecord): string {
      const hashes = userHasher.all(identity ? JSON.stringify([identity.iss, identity.sub]) : id)
      return hashes.map(hash => hash.slice(0, 12)).join(' ')
    },
    refreshes,
    profiles,
    beginLogin,
    completeLogin,
    logOut,
    /** Logs out all sessions of a user. Undefined unless `platform.backChannelLogout` is on. */
    logOutEverywhere: userSessions && logOutEverywhere,
    /** Resolves with the function that handles a logout token. Undefined unless `platform.backChannelLogout` is on. */
    backChannelLogout,
    demo,
    /** Milliseconds since the epoch. */
    now,
    log,
    metrics,
    /** Undefined if tracing is off. */
    tracing,
    storeStatus: stores.status,
    /** True while this process should not get requests yet, because it waits for its first connection to Redis. */
    isStarting: stores.isStarting,
    /** The number of sessions that this process remembers. */
    rememberedSessions: store.remembered,
    /**
     * Binds a socket that identifies where this process runs (its place, see `store/places.ts`), so that leases can name that
     * place. Call this function when the server listens.
     */
    startPlace: places.start,
    shutdown,
    /**
     * Replaces the secrets with those of `fresh`, and ignores its other settings. A session stays valid if `fresh` still
     * lists the secret with which the session was encrypted.
     */
    replaceSecrets(fresh: Config): void {
      keyring.replace([fresh.session.secret, ...fresh.session.previousSecrets])
      sessionCookie.forgetOpened()
      idp.replaceCredentials(fresh.platform)
    }
  }
}
