/**
 * Login, refresh and logout, independent of HTTP. The middleware in `http/` translates requests into calls of these
 * functions, and translates the results into responses.
 */
import type { Config } from './config/settings.js'
import type { BackChannelLogout } from './login/back-channel-logout.js'
import { type BeginLogin, createBeginLogin } from './login/begin-login.js'
import { createCodeExchanges } from './login/code-exchange.js'
import { type CompleteLogin, createCompleteLogin } from './login/complete-login.js'
import { createLogOuts, type LogOut } from './login/log-out.js'
import { createProfiles, type Profiles } from './login/profiles.js'
import type { LoginTransactions } from './login/transaction.js'
import type { Metrics } from './metrics/metrics.js'
import { createAccess } from './modes/access.js'
import type { Mode, Tokens } from './modes/mode.js'
import type { IdentityProvider } from './provider/client.js'
import { createRefreshes, type Refreshes } from './refresh/index.js'
import type { SessionRecord } from './session/record.js'
import type { SessionCookie } from './session/session-cookie.js'
import type { Stores } from './store/index.js'
import type { Clock } from './support/clock.js'
import type { Background } from './support/shutdown.js'

interface AuthParts {
  readonly config: Config
  readonly mode: Mode
  readonly idp: IdentityProvider
  readonly transactions: LoginTransactions
  readonly sessionCookie: SessionCookie
  readonly stores: Pick<Stores, 'store' | 'places' | 'userSessions'>
  readonly background: Background
  readonly metrics: Metrics
  readonly clock: Clock
}

export interface Auth extends Pick<Refreshes, 'current' | 'newest' | 'change'>, Pick<Profiles, 'displayName'> {
  readonly beginLogin: BeginLogin
  readonly completeLogin: CompleteLogin
  readonly logOut: LogOut
  /** Logs out all sessions of a person. Undefined unless `platform.backChannelLogout` is on. */
  readonly logOutEverywhere: LogOut | undefined
  /** Handles a logout token. Undefined unless `platform.backChannelLogout` is on. */
  readonly backChannelLogout: BackChannelLogout | undefined
  /**
   * True if this process knows that the session was logged out. Each logout is sent to all replicas, so a replica that is
   * connected to Redis knows of it at once.
   */
  isLoggedOut(sessionId: string): boolean
  /** False if only this process has the newest session, so that a reference must not name its revision. */
  isSaved(sessionId: string): boolean
  /** Returns the access tokens of a session with their remaining lifetimes. */
  tokensOf(session: SessionRecord): Tokens
  /** True if `GET /api/auth/token` gives pages an access token. This is the case in dual mode. */
  readonly offersPublicToken: boolean
  /** Resolves when no refresh and no code exchange is in progress, and their results are stored. */
  ended(): Promise<void>
}

export function createAuth({ stores, ...others }: AuthParts): Auth {
  const parts = { ...others, ...stores }
  const { config, mode, store, userSessions } = parts
  const { platform, profile, refresh, session, logout } = config
  const { clientId, timeoutSeconds, pkce, backChannelLogout } = platform
  const { maxAgeSeconds } = session
  const { now } = store
  const access = config.access.allow && createAccess(config.access.allow, parts.idp)
  const codeExchanges = createCodeExchanges({ ...parts, timeoutSeconds, access, sessionStore: session.store })
  const refreshes = createRefreshes({ ...parts, ...refresh, timeoutSeconds, access })
  const profiles = createProfiles({ ...parts, now, keepSeconds: profile.keepSeconds })
  const { logOut, logOutEverywhere, endSessions } = createLogOuts({ ...parts, logout, profiles })

  const loading = userSessions
    ? import('./login/back-channel-logout.js').then(module =>
        module.createBackChannelLogout({ ...parts, userSessions, clientId, endSessions })
      )
    : undefined
  // Without this handler, a failure before the first logout token would end the process.
  loading?.catch(() => {})

  return {
    current: refreshes.current,
    newest: refreshes.newest,
    change: refreshes.change,
    displayName: profiles.displayName,
    beginLogin: createBeginLogin({ ...parts, now, pkce, maxAgeSeconds }),
    completeLogin: createCompleteLogin({ ...parts, now, codeExchanges }),
    logOut,
    logOutEverywhere: backChannelLogout ? logOutEverywhere : undefined,
    backChannelLogout: loading && (async (token, log) => (await loading)(token, log)),
    isLoggedOut: store.isLoggedOut,
    isSaved: store.isSaved,
    tokensOf: ({ fields }) => mode.tokens(fields, now()),
    offersPublicToken: mode.offersPublicToken,
    async ended() {
      await Promise.all([refreshes.ended(), codeExchanges.ended()])
      await store.saved()
    }
  }
}
