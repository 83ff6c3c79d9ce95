/**
 * Login, refresh and logout, independent of HTTP. The middleware in `http/` translates requests into calls of these
 * functions, and translates the results into responses.
 */
import type { Config } from '../config/settings.js'
import type { Coordination } from '../coordination/coordination.js'
import type { IdentityProvider } from '../idp/client.js'
import type { LoginTransactions } from '../login/transaction.js'
import type { Metrics } from '../metrics/metrics.js'
import type { Mode, Tokens } from '../modes/mode.js'
import type { SessionRecord } from '../session/record.js'
import type { SessionCookie } from '../session/session-cookie.js'
import type { Background } from '../support/background.js'
import { createAccessRule } from './access.js'
import { type BeginLogin, createBeginLogin } from './begin-login.js'
import { createCodeExchanges } from './code-exchange.js'
import { type CompleteLogin, createCompleteLogin } from './complete-login.js'
import { createLogOut, type LogOut } from './log-out.js'
import { isLoggedOut, isLoggedOutHere } from './logout-marks.js'
import { createProfiles, type Profiles } from './profiles.js'
import { createRefreshes, type Refreshes } from './refresh.js'

export interface AuthParts {
  readonly config: Config
  readonly mode: Mode
  readonly idp: IdentityProvider
  readonly transactions: LoginTransactions
  readonly sessionCookie: SessionCookie
  readonly coordination: Coordination
  readonly background: Background
  readonly metrics: Metrics
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface Auth extends Refreshes, Pick<Profiles, 'displayName'> {
  readonly beginLogin: BeginLogin
  readonly completeLogin: CompleteLogin
  readonly logOut: LogOut
  /** True if the session has been logged out. */
  isLoggedOut(sessionId: string): Promise<boolean>
  /**
   * Like `isLoggedOut`, but looks only in the memory of this process. Each logout is broadcast to the other replicas,
   * so a replica that is connected to the shared store knows of it at once.
   */
  isLoggedOutHere(sessionId: string): boolean
  /** Returns the access tokens of a session with their remaining lifetimes. */
  tokensOf(session: SessionRecord): Tokens
  /** True if `GET /api/auth/token` gives pages an access token. This is the case in dual mode. */
  readonly offersPublicToken: boolean
}

export function createAuth(parts: AuthParts): Auth {
  const { config, mode, idp, coordination, now } = parts
  const { access, platform, profile, refresh, session, logout } = config
  const { maxAgeSeconds } = session
  const accessCheck = access.allow && { access: { rule: createAccessRule(access.allow), idp } }
  const codeExchanges = createCodeExchanges({ mode, coordination, now, ...refresh, ...accessCheck })
  const refreshes = createRefreshes({ ...parts, ...refresh, maxAgeSeconds })
  const profiles = createProfiles({ ...parts, keepSeconds: profile.keepSeconds })

  return {
    ...refreshes,
    displayName: profiles.displayName,
    beginLogin: createBeginLogin({ ...parts, pkce: platform.pkce, maxAgeSeconds }),
    completeLogin: createCompleteLogin({ ...parts, codeExchanges, maxAgeSeconds }),
    logOut: createLogOut({ ...parts, logout, refreshes, profiles, maxAgeSeconds }),
    isLoggedOut: sessionId => isLoggedOut(coordination, sessionId),
    isLoggedOutHere: sessionId => isLoggedOutHere(coordination, sessionId),
    tokensOf: ({ fields }) => mode.tokens(fields, now()),
    offersPublicToken: mode.offersPublicToken
  }
}
