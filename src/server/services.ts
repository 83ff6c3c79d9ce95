/** Creates the services of the server from the configuration, each one after those that it uses. */
import { type Logger, pino } from 'pino'
import { type Clock, systemClock } from '../base/clock.js'
import { type Metrics, noMetrics } from '../base/metrics.js'
import { createBackground, createShutdownHooks, type ShutdownHooks } from '../base/shutdown.js'
import type { Tracing } from '../base/tracing.js'
import type { Config } from '../config/settings.js'
import { createSite } from '../config/site.js'
import { createKeyring } from '../cookie/keyring.js'
import type { SessionRecord } from '../cookie/record.js'
import { createSessionCookie } from '../cookie/session-cookie.js'
import { createAccess } from '../login/access.js'
import { createBeginLogin } from '../login/begin-login.js'
import { createCodeExchanges } from '../login/code-exchange.js'
import { createCompleteLogin } from '../login/complete-login.js'
import { createLogOuts } from '../login/log-out.js'
import { createMode } from '../login/mode.js'
import { createProfiles } from '../login/profiles.js'
import { createRefreshes } from '../login/refreshes.js'
import { createLoginTransactions } from '../login/transaction.js'
import { createPages } from '../pages/index.js'
import { createIdentityProvider, type IdentityProvider } from '../provider/client.js'
import { createTransport } from '../provider/transport.js'
import { createStores, type RedisStatus, type StoreOptions, type Stores } from '../sessions/index.js'
import type { DemoProvider, Services } from '../web/services.js'
import { logOptions, standardOutput } from './log.js'

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

/** The services of the middleware, and those that only the server itself uses. */
interface ServerServices extends Services {
  /**
   * Binds a socket that identifies where this process runs (its place, see `sessions/places.ts`), so that leases can name that
   * place. Call this function when the server listens.
   */
  readonly startPlace: (port: number) => void
  readonly shutdown: Shutdown
  /**
   * Replaces the secrets with those of `fresh`, and ignores its other settings. A session stays valid if `fresh` still
   * lists the secret with which the session was encrypted.
   */
  readonly replaceSecrets: (fresh: Config) => void
  readonly reloadFailed: () => void
}

interface Shutdown {
  readonly hooks: ShutdownHooks
  readonly isDraining: () => boolean
  /** Makes `/readyz` respond with 503. */
  startDraining(): void
  /** Resolves when no revocation is in progress. */
  revocationsEnded(): Promise<void>
  /** Resolves when no revocation, refresh or code exchange is in progress. */
  workEnded(): Promise<void>
  /** Closes all connections. Work that has not ended is lost. */
  close(): Promise<void>
}

const REDIS_UP: Readonly<Record<RedisStatus, number | undefined>> = { up: 1, down: 0, off: undefined }

export function createServices(config: Config, options: Partial<ServiceOptions> = {}): ServerServices {
  const { now = Date.now, metrics = noMetrics, tracing, clock = { ...systemClock, now }, demo } = options
  const { log = pino(logOptions(config.log.level), standardOutput()) } = options
  const { session, platform } = config
  const { inactivityTimeoutSeconds, maxLifetimeSeconds } = session
  const site = createSite(config)
  const background = createBackground()
  const hooks = createShutdownHooks()

  const transport = createTransport(platform.timeoutSeconds * 1000, { metrics, tracing })
  const provider = createIdentityProvider(platform, transport, now, problem =>
    log.warn({ event: 'endpoint_invalid' }, `the discovery document of the identity provider: ${problem}`)
  )
  // Shutdown has to wait for revocations, because otherwise a refresh token could stay valid after this process has
  // ended.
  const idp: IdentityProvider = {
    ...provider,
    revokeRefreshToken: refreshToken => background.add(provider.revokeRefreshToken(refreshToken))
  }

  const keyring = createKeyring([session.secret, ...session.previousSecrets])
  const stores = options.stores ?? createStores(config, { keyring, clock, log, tracing, metrics, ...options.redis })
  const { sessions, places, userSessions } = stores
  metrics.watch('cached_sessions', sessions.cached)
  metrics.watch('provider_pause_seconds', () => sessions.pausedMs(false) / 1000)
  metrics.watch('redis_up', () => REDIS_UP[stores.status()])
  const mode = createMode(config, idp, sessions.now)
  // A cookie of the other mode contains the wrong tokens. Each mode has its own key, so such a cookie cannot be opened.
  const sealer = keyring.sealer(`session cookie, ${mode.name} mode`)
  const ages = { inactivityTimeoutSeconds, maxLifetimeSeconds }
  const sessionCookie = createSessionCookie({ sealer, name: site.cookies.session, ...ages, now, metrics })

  const userHasher = keyring.hasher('session user')
  // The hash of a user takes as long as a tenth of a request.
  let userHashes = new WeakMap<SessionRecord, string>()

  const access = config.access.allow?.length ? createAccess(config.access.allow, idp) : undefined
  // Refreshes and logins use the clock of the store, so that all replicas agree on the time.
  const times = { clock, now: sessions.now, timeoutSeconds: platform.timeoutSeconds }
  const shared = { mode, idp, sessions, userSessions, sessionCookie, access, background, metrics, log, ...times }

  const refreshes = createRefreshes({ ...shared, ...config.refresh })

  const transactions = createLoginTransactions(keyring.sealer('login state'), sessions.now)
  const beginLogin = createBeginLogin({ ...shared, transactions, pkce: platform.pkce, inactivityTimeoutSeconds })
  const codeExchanges = createCodeExchanges({ ...shared, sessionStore: session.store })
  const completeLogin = createCompleteLogin({ ...shared, transactions, codeExchanges, beginLogin })
  const profiles = createProfiles({ ...shared, cacheTtlSeconds: config.profile.cacheTtlSeconds })
  const { logOut, logOutEverywhere, endSessions } = createLogOuts({ ...shared, logout: config.logout, profiles })
  // The module that checks logout tokens is loaded only if `platform.backchannelLogout` is on.
  const backchannelLogout =
    userSessions &&
    import('../login/backchannel-logout.js').then(module =>
      module.createBackchannelLogout({ ...shared, userSessions, clientId: platform.clientId, endSessions })
    )
  // Without this handler, a failure before the first logout token would end the process.
  backchannelLogout?.catch(() => {})

  let lastReload = { isSuccessful: true, succeededAt: now() }
  metrics.watch('config_last_reload_successful', () => Number(lastReload.isSuccessful))
  metrics.watch('config_last_reload_success_timestamp_seconds', () => lastReload.succeededAt / 1000)

  let isDraining = false
  const shutdown: Shutdown = {
    hooks,
    isDraining: () => isDraining,
    startDraining() {
      isDraining = true
    },
    revocationsEnded: () => background.ended(),
    async workEnded() {
      await Promise.all([background.ended(), refreshes.ended(), codeExchanges.ended()])
      await sessions.saved()
    },
    async close() {
      await stores.close()
      transport.close()
      await hooks.close()
    }
  }

  return {
    config,
    site,
    pages: createPages(config.branding),
    mode,
    sessions,
    sessionCookie,
    sessionUser(record) {
      const known = userHashes.get(record)
      if (known !== undefined) return known
      const { id, identity } = record
      const hashes = userHasher.all(identity ? JSON.stringify([identity.iss, identity.sub]) : id)
      const user = hashes.map(hash => hash.slice(0, 12)).join(' ')
      userHashes.set(record, user)
      return user
    },
    refreshes,
    profiles,
    beginLogin,
    completeLogin,
    logOut,
    logOutEverywhere: userSessions && logOutEverywhere,
    backchannelLogout,
    demo,
    now,
    log,
    metrics,
    tracing,
    redisStatus: stores.status,
    isStarting: stores.isStarting,
    startPlace: places.start,
    shutdown,
    replaceSecrets(fresh) {
      keyring.replace([fresh.session.secret, ...fresh.session.previousSecrets])
      sessionCookie.forgetOpened()
      userHashes = new WeakMap()
      idp.replaceCredentials(fresh.platform)
      lastReload = { isSuccessful: true, succeededAt: now() }
    },
    reloadFailed() {
      lastReload = { ...lastReload, isSuccessful: false }
    }
  }
}
