/**
 * Begins a login and detects login loops. Some pages start a login whenever no user is signed in. If the browser does not keep
 * the session cookie, such a page starts one login after another. This is a login loop.
 */

import type { IdentityProvider } from '../provider/client.js'
import type { Mode } from './mode.js'
import type { LoginTransactions } from './transaction.js'

interface BeginLoginDependencies {
  readonly mode: Pick<Mode, 'loginScope'>
  readonly idp: Pick<IdentityProvider, 'authorizationUrl'>
  readonly transactions: Pick<LoginTransactions, 'begin'>
  /** The lifetime of a session cookie. */
  readonly inactivityTimeoutSeconds: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

interface LoginRequest {
  /** The random value that identifies this browser, from `newBrowserId()`. */
  readonly browserId: string
  /** The path to open after the login. `safeReturnTo` has accepted it. */
  readonly returnTo: string
  /** The time of this browser's last successful login, in milliseconds since the epoch. Undefined if there was none. */
  readonly succeededAt: number | undefined
  readonly hasSessionCookie: boolean
  /** The prompt for this login only. If undefined, that of `platform.authorizationParams` applies. */
  readonly prompt?: string | undefined
  /** True if the server starts a login again by itself. */
  readonly isRestart?: boolean
}

/**
 * The prompts that a page may request (OpenID Connect Core section 3.1.2.1): `login` makes the provider ask for the credentials
 * again, and `select_account` makes the provider offer a choice of accounts. APS knows only `login`.
 */
export const LOGIN_PROMPTS = ['login', 'select_account'] as const
export type LoginPrompt = (typeof LOGIN_PROMPTS)[number]

/**
 * Returns the URL of the authorization endpoint to which the browser must be sent. Returns undefined in a loop: a login of this browser
 * has just succeeded, but the browser did not send back its session cookie. Rejects with ProviderError if the endpoints of the identity
 * provider cannot be discovered.
 */
export type BeginLogin = (request: LoginRequest) => Promise<string | undefined>

// A loop repeats within seconds. A login that starts more than a minute after the last login has another cause. For example, the
// user may have deleted the cookies.
const LOOP_WINDOW_MS = 60_000

export function createBeginLogin(dependencies: BeginLoginDependencies): BeginLogin {
  const { mode, idp, transactions, inactivityTimeoutSeconds, now } = dependencies
  // Browsers delete the session cookie after `inactivityTimeoutSeconds`. After that time, a missing cookie does not indicate a loop.
  const loopWindowMs = Math.min(LOOP_WINDOW_MS, inactivityTimeoutSeconds * 1000)

  function isLoop({ succeededAt, hasSessionCookie }: LoginRequest): boolean {
    if (succeededAt === undefined || hasSessionCookie) return false
    return succeededAt <= now() && now() - succeededAt < loopWindowMs
  }

  return async function beginLogin(request) {
    if (isLoop(request)) return undefined
    const { browserId, returnTo, prompt, isRestart } = request
    const login = transactions.begin(browserId, returnTo, { prompt, isRestart: isRestart || undefined })
    return idp.authorizationUrl({ ...login, scope: mode.loginScope, prompt })
  }
}
