/** Creates the services of the server from the configuration, each one after those that it uses. */
import type { Logger } from 'pino'
import { type Clock, systemClock } from '../base/clock.js'
import { type Metrics, noMetrics } from '../base/metrics.js'
import { createBackground, createShutdownHooks } from '../base/shutdown.js'
import type { Tracing } from '../base/tracing.js'
import type { Config } from '../config/settings.js'
import { createSite } from '../config/site.js'
import { MAX_AGE } from '../config/types/params.js'
import { createKeyring, type Hasher } from '../cookie/keyring.js'
import { createSessionCookie } from '../cookie/session-cookie.js'
import { requesterOf, type SessionRecord } from '../cookie/session-record.js'
import { type Access, createAccess } from '../login/access.js'
import { createBeginLogin } from '../login/begin-login.js'
import { createCodeExchanges } from '../login/code-exchange.js'
import { createCompleteLogin } from '../login/complete-login.js'
import { createEvidence } from '../login/evidence.js'
import { createLogOuts } from '../login/log-out.js'
import { createMode } from '../login/mode.js'
import { createProfiles } from '../login/profiles.js'
import { createLevels } from '../login/refresh-report.js'
import { createRefreshes } from '../login/refreshes.js'
import { revokeInBackground } from '../login/token-requests.js'
import { createLoginTransactions } from '../login/transaction.js'
import { createPages } from '../pages/index.js'
import { createIdentityProvider, type IdentityProvider } from '../provider/client.js'
import { createTransport } from '../provider/transport.js'
import { createStores, type RedisStatus, type StoreOptions, type Stores } from '../sessions/index.js'
import type { DemoProvider, Services } from '../web/middleware-services.js'
import { createLog } from './log.js'

/** The dependencies that an application can replace. */
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

const REDIS_UP: Readonly<Record<RedisStatus, number | undefined>> = { up: 1, down: 0, off: undefined }

/** Creates the services of the middleware, and those that only the server itself uses. */
export function createServices(config: Config, options: Partial<ServiceOptions> = {}) {
  const shared = createShared(config, options)
  const { keyring, stores, idp, mode, sessions, userSessions, sessionCookie, metrics, log, wallClock } = shared
  const { codeExchanges, ...login } = createLogin(config, shared)
  const sessionUsers = createSessionUsers(keyring.hasher('session user'))
  const shutdown = createShutdown(shared, { codeExchanges, ...login })

  let lastReload = { isSuccessful: true, succeededAt: wallClock() }
  metrics.watch('config_last_reload_successful', () => Number(lastReload.isSuccessful))
  metrics.watch('config_last_reload_success_timestamp_seconds', () => lastReload.succeededAt / 1000)
  metrics.watch('cached_sessions', sessions.cached)
  metrics.watch('provider_pause_seconds', () => sessions.pausedMs('refresh') / 1000)
  metrics.watch('redis_up', () => REDIS_UP[stores.status()])
  metrics.watch('client_rejections', shared.evidence.clientRejections)

  const services: Services = {
    config,
    site: shared.site,
    pages: createPages(config.branding),
    mode,
    sessions,
    userSessions,
    sessionCookie,
    sessionUser: sessionUsers.of,
    ...login,
    demo: options.demo,
    now: wallClock,
    log,
    metrics,
    tracing: options.tracing,
    redisStatus: stores.status,
    isStarting: stores.isStarting,
    shutdown
  }
  return {
    ...services,
    shutdown,
    /**
     * Binds a socket that identifies where this process runs (`sessions/host-slots.ts`), so that leases can name it. Call this
     * function when the server listens.
     */
    startHostSlot: stores.hostSlots.start,
    /**
     * Replaces the secrets with those of `fresh`, and ignores its other settings. A session stays valid if `fresh` still
     * lists the secret with which the session was encrypted.
     */
    replaceSecrets(fresh: Config) {
      keyring.replace([fresh.session.secret, ...fresh.session.previousSecrets])
      sessionCookie.forgetOpened()
      sessionUsers.forget()
      idp.replaceCredentials(fresh.platform)
      void sessions.restoreAll()
      lastReload = { isSuccessful: true, succeededAt: wallClock() }
    },
    reloadFailed() {
      lastReload = { ...lastReload, isSuccessful: false }
    }
  }
}

type SharedServices = ReturnType<typeof createShared>

/** Creates what several of the other services use. */
function createShared(config: Config, options: Partial<ServiceOptions>) {
  const { now: wallClock = Date.now, metrics = noMetrics, tracing } = options
  const { clock = { ...systemClock, now: wallClock }, log = createLog({ ...config.log, format: 'json' }) } = options
  const { session, platform } = config
  const { inactivityTimeoutSeconds, maxLifetimeSeconds } = session
  const site = createSite(config)
  const background = createBackground()

  const transport = createTransport(platform.timeoutSeconds * 1000, { metrics, tracing })
  const provider = createIdentityProvider(platform, transport, wallClock, (fields, problem) =>
    log.warn(fields, `the discovery document of the identity provider: ${problem}`)
  )
  // Shutdown has to wait for revocations, because otherwise a refresh token could stay valid after this process has
  // ended.
  const idp: IdentityProvider = {
    ...provider,
    revokeRefreshToken: refreshToken => background.add(provider.revokeRefreshToken(refreshToken))
  }

  const keyring = createKeyring([session.secret, ...session.previousSecrets])
  const storeOptions: StoreOptions = {
    keyring,
    clock,
    log,
    tracing,
    metrics,
    revoke: refreshToken => config.logout.revoke && revokeInBackground(idp, refreshToken),
    ...options.redis
  }
  const stores = options.stores ?? createStores(config, storeOptions)
  const { sessions, userSessions } = stores
  // Refreshes and logins use the clock of the store, so that all replicas agree on the time.
  const { now } = sessions
  const levelOf = createLevels()
  const mode = createMode(config, idp, now, err =>
    log[levelOf(err.message)](
      { event: 'id_token_ignored', err },
      'the ID token of a refresh cannot be used, so it is ignored'
    )
  )
  // A cookie of the other mode contains the wrong tokens. Each mode has its own key, so such a cookie cannot be opened.
  const sealer = keyring.sealer(`session cookie, ${mode.name} mode`)
  const ages = { inactivityTimeoutSeconds, maxLifetimeSeconds }
  const sessionCookie = createSessionCookie({ sealer, name: site.cookies.session, ...ages, now: wallClock, metrics })
  return {
    site,
    keyring,
    transport,
    stores,
    sessions,
    userSessions,
    idp,
    mode,
    sessionCookie,
    background,
    metrics,
    log,
    clock,
    now,
    wallClock,
    timeoutSeconds: platform.timeoutSeconds,
    access: createAccessOf(config, idp),
    evidence: createEvidence(),
    transactions: createLoginTransactions(keyring.sealer('login state'), now)
  }
}

/** Returns undefined if every account may sign in, and in any way. */
function createAccessOf({ access, platform }: Config, idp: IdentityProvider): Access | undefined {
  const { allow, acr } = access
  const { [MAX_AGE]: maxAge } = platform.authorizationParams ?? {}
  if (!allow?.length && !acr && maxAge === undefined) return undefined
  return createAccess({ allow, acr, maxAgeSeconds: maxAge === undefined ? undefined : Number(maxAge) }, idp)
}

/** Creates what signs users in, keeps them signed in and logs them out. */
function createLogin(config: Config, shared: SharedServices) {
  const { userSessions } = shared
  const { session, platform, logout, profile } = config
  const { inactivityTimeoutSeconds } = session
  const refreshes = createRefreshes({ ...shared, ...config.refresh })
  const beginLogin = createBeginLogin({ ...shared, inactivityTimeoutSeconds })
  const codeExchanges = createCodeExchanges({ ...shared, sessionStore: session.store })
  const completeLogin = createCompleteLogin({ ...shared, codeExchanges })
  const profiles = createProfiles({ ...shared, cacheTtlSeconds: profile.cacheTtlSeconds })
  const { logOut, logOutEverywhere, endSessions } = createLogOuts({ ...shared, logout, profiles })
  // The module that checks logout tokens is loaded only if `platform.backchannelLogout` is on.
  const backchannelLogout =
    userSessions &&
    import('../login/backchannel-logout.js').then(module =>
      module.createBackchannelLogout({ ...shared, userSessions, clientId: platform.clientId, endSessions })
    )
  // Without this handler, a failure before the first logout token would end the process.
  backchannelLogout?.catch(() => {})
  return {
    refreshes,
    beginLogin,
    codeExchanges,
    completeLogin,
    profiles,
    logOut,
    logOutEverywhere: userSessions && logOutEverywhere,
    backchannelLogout
  }
}

function createSessionUsers(hasher: Hasher) {
  // The hash of a user takes as long as a tenth of a request.
  let known = new WeakMap<SessionRecord, string>()
  return {
    of(record: SessionRecord): string {
      const before = known.get(record)
      if (before !== undefined) return before
      const hashes = hasher.all(requesterOf(record).user)
      const user = hashes.map(hash => hash.slice(0, 12)).join(' ')
      known.set(record, user)
      return user
    },
    /** Call this function when the secrets change, because the strings depend on them. */
    forget() {
      known = new WeakMap()
    }
  }
}

function createShutdown(
  { background, stores, transport }: SharedServices,
  { refreshes, codeExchanges }: ReturnType<typeof createLogin>
) {
  const hooks = createShutdownHooks()
  let isDraining = false
  return {
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
      await stores.sessions.saved()
    },
    /** Closes all connections. Work that has not ended is lost. */
    async close() {
      await stores.close()
      transport.close()
      await hooks.close()
    }
  }
}
