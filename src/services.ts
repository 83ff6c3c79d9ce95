/** Creates the parts of the server from the configuration. Each part is created after the parts that it uses. */
import { type Logger, pino } from 'pino'
import type { Config } from './config/settings.js'
import { createSite, type Site } from './http/routes/site.js'
import { logOptions, standardOutput } from './log.js'
import type { BackChannelLogout } from './login/back-channel-logout.js'
import { type BeginLogin, createBeginLogin } from './login/begin-login.js'
import { createCodeExchanges } from './login/code-exchange.js'
import { type CompleteLogin, createCompleteLogin } from './login/complete-login.js'
import { createLogOuts, type LogOut } from './login/log-out.js'
import { createProfiles, type Profiles } from './login/profiles.js'
import { createLoginTransactions } from './login/transaction.js'
import { type Metrics, noMetrics } from './metrics/metrics.js'
import { createAccess } from './modes/access.js'
import type { Mode } from './modes/mode.js'
import { createMode } from './modes/modes.js'
import { createIdentityProvider, type IdentityProvider } from './provider/client.js'
import { observed } from './provider/observed-transport.js'
import { createTransport } from './provider/transport.js'
import { createRefreshes, type Refreshes } from './refresh/index.js'
import { createKeyring } from './session/keyring.js'
import { createSessionCookie, type SessionCookie } from './session/session-cookie.js'
import { createStores, type StoreOptions, type StoreStatus, type Stores } from './store/index.js'
import type { SessionStore } from './store/store.js'
import { type Clock, systemClock } from './support/clock.js'
import { createBackground, createShutdownHooks, type ShutdownHooks } from './support/shutdown.js'
import type { Tracing } from './telemetry/tracing.js'

/** The parts that a program can replace. */
export interface AppParts {
  /** The clock, in milliseconds since the epoch. */
  readonly now: () => number
  readonly log: Logger
}

/** The parts that only this package and its tests replace. */
export interface ServiceParts extends AppParts {
  readonly stores: Stores
  /** How the store connects to Redis. */
  readonly redis: Pick<StoreOptions, 'open' | 'timing'>
  readonly metrics: Metrics
  readonly tracing: Tracing
  /** The clocks and timers. Its `now` must be the `now` above. */
  readonly clock: Clock
}

export interface Services {
  readonly mode: Mode
  readonly store: SessionStore
  readonly refreshes: Refreshes
  readonly profiles: Profiles
  readonly beginLogin: BeginLogin
  readonly completeLogin: CompleteLogin
  readonly logOut: LogOut
  /** Logs out all sessions of a user. Undefined unless `platform.backChannelLogout` is on. */
  readonly logOutEverywhere: LogOut | undefined
  /** Handles a logout token. Undefined unless `platform.backChannelLogout` is on. */
  readonly backChannelLogout: BackChannelLogout | undefined
  readonly site: Site
  readonly sessionCookie: SessionCookie
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly log: Logger
  readonly metrics: Metrics
  /** Undefined if tracing is off. */
  readonly tracing: Tracing | undefined
  readonly storeStatus: () => StoreStatus
  /** The number of sessions of which this process remembers anything. */
  readonly rememberedSessions: () => number
  /** Gets the place of this port. Leases then name it. Call it when the server has its port. */
  startPlace(port: number): void
  readonly shutdown: Shutdown
  /**
   * Replaces the secrets with those of `fresh`, and ignores its other settings. A session stays valid if `fresh` still
   * lists the secret with which the session was encrypted.
   */
  replaceSecrets(fresh: Config): void
}

/** The tasks of the services when the server shuts down. */
export interface Shutdown {
  readonly hooks: ShutdownHooks
  /** Resolves when no revocation is in progress. */
  revocationsEnded(): Promise<void>
  /** Resolves when no revocation, refresh or code exchange is in progress. */
  workEnded(): Promise<void>
  /** Closes all connections. Work that has not ended is lost. */
  close(): Promise<void>
}

export function createServices(config: Config, given: Partial<ServiceParts> = {}): Services {
  const { now = Date.now, metrics = noMetrics, tracing, clock = { ...systemClock, now } } = given
  const { log = pino(logOptions(config.log.level), standardOutput()) } = given
  const { session, platform } = config
  const { maxAgeSeconds, absoluteMaxAgeSeconds } = session
  const site = createSite(config)

  const transport = observed(createTransport(platform.timeoutSeconds * 1000), metrics, tracing)
  const background = createBackground()
  const provider = createIdentityProvider(platform, transport, now)
  // Shutdown has to wait for revocations. Otherwise the refresh token would still be valid after this process has
  // ended.
  const idp: IdentityProvider = {
    ...provider,
    revokeRefreshToken: refreshToken => background.add(provider.revokeRefreshToken(refreshToken))
  }
  const keyring = createKeyring([session.secret, ...session.previousSecrets])
  const { store, places, userSessions, ...stores } =
    given.stores ?? createStores(config, { keyring, clock, log, tracing, ...given.redis })
  const mode = createMode(config, idp, store.now)
  // A cookie of the other mode contains the wrong tokens. Each mode has its own key, so such a cookie cannot be opened.
  const sealer = keyring.sealer(`session cookie, ${mode.name} mode`)
  const ages = { maxAgeSeconds, absoluteMaxAgeSeconds }
  const sessionCookie = createSessionCookie({ sealer, name: site.cookies.session, ...ages, now, metrics })
  const transactions = createLoginTransactions(keyring.sealer('login state'), store.now)
  const access = config.access.allow && createAccess(config.access.allow, idp)
  const parts = { mode, idp, store, places, userSessions, transactions, sessionCookie, background, metrics, clock }
  const work = { ...parts, access, timeoutSeconds: platform.timeoutSeconds }
  const codeExchanges = createCodeExchanges({ ...work, sessionStore: session.store })
  const refreshes = createRefreshes({ ...work, ...config.refresh })
  const profiles = createProfiles({ mode, idp, now: store.now, keepSeconds: config.profile.keepSeconds })
  const { logOut, logOutEverywhere, endSessions } = createLogOuts({ ...parts, logout: config.logout, profiles })
  // Only this setting needs the check of logout tokens, so its module is loaded only then.
  const loading =
    userSessions &&
    import('./login/back-channel-logout.js').then(module =>
      module.createBackChannelLogout({ ...parts, userSessions, clientId: platform.clientId, endSessions })
    )
  // Without this handler, a failure before the first logout token would end the process.
  loading?.catch(() => {})
  const hooks = createShutdownHooks()

  return {
    mode,
    store,
    refreshes,
    profiles,
    beginLogin: createBeginLogin({ ...parts, now: store.now, pkce: platform.pkce, maxAgeSeconds }),
    completeLogin: createCompleteLogin({ ...parts, now: store.now, codeExchanges }),
    logOut,
    logOutEverywhere: platform.backChannelLogout ? logOutEverywhere : undefined,
    backChannelLogout: loading && (async (token, log) => (await loading)(token, log)),
    site,
    sessionCookie,
    now,
    log,
    metrics,
    tracing,
    storeStatus: stores.status,
    rememberedSessions: store.remembered,
    startPlace: places.start,
    shutdown: {
      hooks,
      revocationsEnded: () => background.ended(),
      async workEnded() {
        await Promise.all([background.ended(), refreshes.ended(), codeExchanges.ended()])
        await store.saved()
      },
      async close() {
        await stores.close()
        transport.close()
        await hooks.close()
      }
    },
    replaceSecrets(fresh) {
      keyring.replace([fresh.session.secret, ...fresh.session.previousSecrets])
      sessionCookie.forgetOpened()
      idp.replaceCredentials(fresh.platform)
    }
  }
}
