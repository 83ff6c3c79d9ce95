/** Creates the services of the server from the configuration, each one after those that it uses. */
import { type Logger, pino } from 'pino'
import { type Clock, systemClock } from '../base/clock.js'
import { type Metrics, noMetrics } from '../base/metrics.js'
import { type Background, createBackground, createShutdownHooks, type ShutdownHooks } from '../base/shutdown.js'
import type { Tracing } from '../base/tracing.js'
import type { Config } from '../config/settings.js'
import { createSite } from '../config/site.js'
import { MAX_AGE } from '../config/types/params.js'
import { createKeyring, type Hasher } from '../cookie/keyring.js'
import type { SessionRecord } from '../cookie/record.js'
import { createSessionCookie, type SessionCookie } from '../cookie/session-cookie.js'
import { type Access, createAccess } from '../login/access.js'
import { createBeginLogin } from '../login/begin-login.js'
import { type CodeExchanges, createCodeExchanges } from '../login/code-exchange.js'
import { createCompleteLogin } from '../login/complete-login.js'
import { createEvidence, type Evidence } from '../login/evidence.js'
import { revokeInBackground } from '../login/grants.js'
import { createLogOuts } from '../login/log-out.js'
import { createMode, type Mode } from '../login/mode.js'
import { createProfiles } from '../login/profiles.js'
import { createLevels } from '../login/refresh-report.js'
import { createRefreshes, type Refreshes } from '../login/refreshes.js'
import { createLoginTransactions, type LoginTransactions } from '../login/transaction.js'
import { createPages } from '../pages/index.js'
import { createIdentityProvider, type IdentityProvider } from '../provider/client.js'
import { createTransport, type Transport } from '../provider/transport.js'
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
   * Binds a socket that identifies where this process runs (`sessions/host-slots.ts`), so that leases can name it. Call this
   * function when the server listens.
   */
  readonly startHostSlot: (port: number) => void
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

  const transport = createTransport(platform.timeoutSeconds * 1000, { metrics, tracing })
  const provider = createIdentityProvider(platform, transport, now, (fields, problem) =>
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
    ...{ keyring, clock, log, tracing, metrics },
    revoke: refreshToken => config.logout.revoke && revokeInBackground(idp, refreshToken),
    ...options.redis
  }
  const stores = options.stores ?? createStores(config, storeOptions)
  const { sessions, hostSlots, userSessions } = stores
  watchStores(metrics, stores)
  const levelOf = createLevels()
  const mode = createMode(config, idp, sessions.now, err =>
    log[levelOf(err.message)](
      { event: 'id_token_ignored', err },
      'the ID token of a refresh cannot be used, so it is ignored'
    )
  )
  // A cookie of the other mode contains the wrong tokens. Each mode has its own key, so such a cookie cannot be opened.
  const sealer = keyring.sealer(`session cookie, ${mode.name} mode`)
  const ages = { inactivityTimeoutSeconds, maxLifetimeSeconds }
  const sessionCookie = createSessionCookie({ sealer, name: site.cookies.session, ...ages, now, metrics })
  const sessionUsers = createSessionUsers(keyring.hasher('session user'))

  const access = createAccessOf(config, idp)
  // Refreshes and logins use the clock of the store, so that all replicas agree on the time.
  const times = { clock, now: sessions.now, timeoutSeconds: platform.timeoutSeconds }
  const evidence = createEvidence()
  metrics.watch('client_rejections', evidence.clientRejections)
  const shared = {
    evidence,
    mode,
    idp,
    sessions,
    userSessions,
    sessionCookie,
    access,
    background,
    metrics,
    log,
    ...times
  }
  const transactions = createLoginTransactions(keyring.sealer('login state'), sessions.now)
  const { codeExchanges, ...login } = createLogin(config, { ...shared, transactions })

  let lastReload = { isSuccessful: true, succeededAt: now() }
  metrics.watch('config_last_reload_successful', () => Number(lastReload.isSuccessful))
  metrics.watch('config_last_reload_success_timestamp_seconds', () => lastReload.succeededAt / 1000)

  return {
    config,
    site,
    pages: createPages(config.branding),
    mode,
    sessions,
    userSessions,
    sessionCookie,
    sessionUser: sessionUsers.of,
    ...login,
    demo,
    now,
    log,
    metrics,
    tracing,
    redisStatus: stores.status,
    isStarting: stores.isStarting,
    startHostSlot: hostSlots.start,
    shutdown: createShutdown({ background, refreshes: login.refreshes, codeExchanges, stores, transport }),
    replaceSecrets(fresh) {
      keyring.replace([fresh.session.secret, ...fresh.session.previousSecrets])
      sessionCookie.forgetOpened()
      sessionUsers.forget()
      idp.replaceCredentials(fresh.platform)
      void sessions.restoreAll()
      lastReload = { isSuccessful: true, succeededAt: now() }
    },
    reloadFailed() {
      lastReload = { ...lastReload, isSuccessful: false }
    }
  }
}

function watchStores(metrics: Metrics, { sessions, status }: Stores): void {
  metrics.watch('cached_sessions', sessions.cached)
  metrics.watch('provider_pause_seconds', () => sessions.pausedMs('refresh') / 1000)
  metrics.watch('redis_up', () => REDIS_UP[status()])
}

/** Returns undefined if every account may sign in, and in any way. */
function createAccessOf({ access, platform }: Config, idp: IdentityProvider): Access | undefined {
  const { allow, acr } = access
  const { [MAX_AGE]: maxAge } = platform.authorizationParams ?? {}
  if (!allow?.length && !acr && maxAge === undefined) return undefined
  return createAccess({ allow, acr, maxAgeSeconds: maxAge === undefined ? undefined : Number(maxAge) }, idp)
}

/** What logins, refreshes and logouts use. */
interface LoginDependencies extends Pick<Stores, 'sessions' | 'userSessions'> {
  readonly mode: Mode
  readonly idp: IdentityProvider
  readonly evidence: Evidence
  readonly sessionCookie: SessionCookie
  readonly transactions: LoginTransactions
  /** Undefined if every account is allowed. */
  readonly access: Access | undefined
  readonly background: Background
  readonly clock: Clock
  /** The clock of the store, in milliseconds since the epoch. */
  readonly now: () => number
  readonly timeoutSeconds: number
  readonly metrics: Metrics
  readonly log: Logger
}

/** Creates what signs users in, keeps them signed in and logs them out. */
function createLogin(config: Config, shared: LoginDependencies) {
  const { userSessions } = shared
  const { session, platform, logout, profile } = config
  const { inactivityTimeoutSeconds } = session
  const refreshes = createRefreshes({ ...shared, ...config.refresh })
  const beginLogin = createBeginLogin({ ...shared, pkce: platform.pkce, inactivityTimeoutSeconds })
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

interface SessionUsers {
  readonly of: Services['sessionUser']
  /** Call this function when the secrets change, because the strings depend on them. */
  forget(): void
}

function createSessionUsers(hasher: Hasher): SessionUsers {
  // The hash of a user takes as long as a tenth of a request.
  let known = new WeakMap<SessionRecord, string>()
  return {
    of(record) {
      const before = known.get(record)
      if (before !== undefined) return before
      const { id, identity } = record
      const hashes = hasher.all(identity ? JSON.stringify([identity.iss, identity.sub]) : id)
      const user = hashes.map(hash => hash.slice(0, 12)).join(' ')
      known.set(record, user)
      return user
    },
    forget() {
      known = new WeakMap()
    }
  }
}

interface ShutdownDependencies {
  readonly background: Background
  readonly refreshes: Refreshes
  readonly codeExchanges: CodeExchanges
  readonly stores: Stores
  readonly transport: Transport
}

function createShutdown({ background, refreshes, codeExchanges, stores, transport }: ShutdownDependencies): Shutdown {
  const hooks = createShutdownHooks()
  let isDraining = false
  return {
    hooks,
    isDraining: () => isDraining,
    startDraining() {
      isDraining = true
    },
    revocationsEnded: () => background.ended(),
    async workEnded() {
      await Promise.all([background.ended(), refreshes.ended(), codeExchanges.ended()])
      await stores.sessions.saved()
    },
    async close() {
      await stores.close()
      transport.close()
      await hooks.close()
    }
  }
}
