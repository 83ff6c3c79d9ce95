/**
 * Completes a login after the identity provider has redirected the browser to the callback.
 */

import type { SessionCookie } from '../cookie/session-cookie.js'
import type { CookieSession, Identity, SessionRecord } from '../cookie/session-record.js'
import type { IdentityProvider } from '../provider/client.js'
import { ProviderError } from '../provider/provider-error.js'
import { type Denial, ignoreUnavailable, type Sessions } from '../sessions/index.js'
import { isWeakness } from './authentication.js'
import { type CodeExchange, type CodeExchanges, ID_LENGTH } from './code-exchange.js'
import { retrySecondsOf } from './failure.js'
import { liveSession } from './log-out.js'
import { revokeInBackground } from './token-requests.js'
import { LOGIN_MAX_AGE_SECONDS, type LoginTransaction, type LoginTransactions, type StrayLogin } from './transaction.js'

interface CompleteLoginDependencies {
  readonly idp: Pick<IdentityProvider, 'metadata' | 'issuer' | 'revokeRefreshToken'>
  readonly transactions: Pick<LoginTransactions, 'open'>
  readonly codeExchanges: CodeExchanges
  readonly sessions: Pick<Sessions, 'current' | 'known' | 'end'>
  readonly sessionCookie: Pick<SessionCookie, 'seal'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/**
 * The parameters with which the identity provider redirects the browser to the callback (RFC 6749 sections 4.1.2 and
 * 4.1.2.1, RFC 9207).
 */
export type AuthorizationResponse = { readonly state: string; readonly iss: string | undefined } & (
  | { readonly kind: 'code'; readonly code: string }
  | {
      readonly kind: 'error'
      readonly error: string
      /** True if the login page of the provider expired, and another tab has signed in meanwhile (`isExpiredLoginPage`). */
      readonly isExpired: boolean
    }
)

interface CallbackRequest {
  readonly response: AuthorizationResponse
  /** The random value from the login cookie, which identifies this browser. Undefined if the browser sent no such cookie. */
  readonly browserId: string | undefined
  /** The session that the browser has, if any. */
  readonly session: CookieSession | undefined
  /** True if the browser opens this URL in a way in which it may also open the login route. */
  readonly isNavigation: boolean
}

/**
 * - `signedIn`: the browser gets `session` instead of the session that it may have; `sealed` contains the cookie values
 * - `restart`: the login cannot be completed, so the browser must begin it once more, with the same `prompt`. `why` is `pageExpired`
 *   if the login page of the provider expired and the login cookie is right
 * - `kept`: an earlier callback has completed this login, and the browser keeps its current session
 * - `notNeeded`: the login cannot be completed, but the browser is signed in
 * - `foreign`: this deployment did not create the state
 * - `unbound`, `otherBrowser`, `expired`: as in `StrayLogin`, if the login was not started again. Also `otherBrowser` instead of `unbound`
 *   if the provider returned an error
 * - `otherIssuer`: the response came from another identity provider
 * - `notAuthorized`: the identity provider returned an error instead of a code
 * - `codeRejected`: the identity provider rejected the code
 * - `used`: an earlier callback has completed this login, but the browser has no valid session now
 * - `denied`: the account may not sign in here
 * - `signedOut`: the identity provider has signed the user out since this login began
 * - `pending`: the identity provider has not responded yet; the code exchange continues, and a later callback gets its result
 * - `throttled`: the identity provider asked to send fewer requests; `retry` tells whether to repeat the callback or to start a new login
 * - `failed`: the identity provider, the store or this server failed
 */
type CallbackResult =
  | {
      readonly kind: 'signedIn'
      readonly session: SessionRecord
      readonly sealed: readonly string[]
      /** Milliseconds since the epoch. */
      readonly succeededAt: number
      /** True if the code was exchanged by an earlier request. */
      readonly isRepeated: boolean
      /** The requested scopes that the provider has not granted. Empty if an earlier request has logged them. */
      readonly scopesMissing: readonly string[]
    }
  | { readonly kind: 'restart'; readonly why: StrayLogin['kind'] | 'pageExpired' }
  | { readonly kind: 'notNeeded'; readonly why: StrayLogin['kind'] }
  | { readonly kind: 'kept' }
  | { readonly kind: 'otherIssuer' }
  | Exclude<CodeExchange, { readonly record: SessionRecord } | { readonly kind: 'interrupted' }>
  | { readonly kind: StrayLogin['kind'] }
  | { readonly kind: 'notAuthorized'; readonly error: string }
  | {
      readonly kind: 'throttled'
      readonly cause: ProviderError
      readonly retry: 'callback' | 'login'
    }
  | { readonly kind: 'failed'; readonly error: unknown }

/**
 * `returnTo` is the path to open after this login, or after the next attempt if this login failed, and `prompt` that of both. A
 * `foreign` result has neither, because its `state` cannot be decrypted.
 */
export type CompletedLogin =
  | (CallbackResult & { readonly returnTo: string; readonly prompt: string | undefined })
  | { readonly kind: 'foreign' }

/** Never rejects. Unexpected errors become the result `failed`. */
export type CompleteLogin = (request: CallbackRequest) => Promise<CompletedLogin>

// A repeated callback sends the same code, and some providers accept a code for one minute only. So after a wait of more than 30
// seconds, the callback is not repeated.
const MAX_RETRY_SECONDS = 30
// An older login is not started again by itself, because the user has probably forgotten it.
const MAX_STRAY_AGE_MS = 86_400_000

export function createCompleteLogin(dependencies: CompleteLoginDependencies): CompleteLogin {
  const { idp, transactions, now } = dependencies
  const { currentSession, wasCompleted, completeWithCode } = createSessionStart(dependencies)

  // RFC 9207 section 2.4: a response from another identity provider must be rejected.
  async function isFromOurIssuer({ iss }: AuthorizationResponse): Promise<boolean> {
    const { issuer } = idp
    if (iss !== undefined) return issuer === undefined || iss === issuer
    // If discovery does not work, a login works only with a configured authorization endpoint, and a mix-up needs a second one.
    return idp.metadata().then(
      metadata => !metadata.issParameterSupported,
      () => true
    )
  }

  function resultOfError(error: unknown, { expiresAt }: LoginTransaction): CallbackResult {
    if (!(error instanceof ProviderError && error.isThrottled)) return { kind: 'failed', error }
    // The callback can be repeated only while the code and the state are still valid.
    const retrySeconds = retrySecondsOf(error)
    const comesTooLate = retrySeconds > MAX_RETRY_SECONDS || now() + retrySeconds * 1000 >= expiresAt
    return { kind: 'throttled', cause: error, retry: comesTooLate ? 'login' : 'callback' }
  }

  /**
   * Finds the way on for a user whose login cannot be completed, for example because several tabs have begun one at the same time.
   * The code is never sent. Whoever makes another browser open such a URL achieves what a link to the path achieves, or a login of
   * that browser by itself.
   */
  async function findWayOn(login: StrayLogin, request: CallbackRequest): Promise<CallbackResult> {
    const { kind, id, expiresAt, prompt, isRestart } = login
    const { response, session } = request
    const live = await currentSession(session)
    if (response.kind === 'error' && !response.isExpired) {
      // The provider has signed in no user, so do not return `unbound`, whose page says that the sign-in worked.
      if (kind !== 'expired') return { kind: 'otherBrowser' }
      return { kind: live ? 'kept' : kind }
    }
    if (!(await isFromOurIssuer(response))) return { kind: 'otherIssuer' }
    const isOld = now() - expiresAt >= MAX_STRAY_AGE_MS - LOGIN_MAX_AGE_SECONDS * 1000
    if (!request.isNavigation || isOld) return { kind }
    if (live && prompt === undefined) return { kind: 'notNeeded', why: kind }
    if (isRestart) return { kind }
    // After a logout, the same URL must not sign the user in again.
    if (!live && (await wasCompleted(id))) return { kind: 'used' }
    return { kind: 'restart', why: kind }
  }

  async function complete(
    transaction: LoginTransaction,
    { response, session }: CallbackRequest
  ): Promise<CallbackResult> {
    if (!(await isFromOurIssuer(response))) return { kind: 'otherIssuer' }
    if (response.kind === 'error' && response.isExpired && !transaction.isRestart) {
      return { kind: 'restart', why: 'pageExpired' }
    }
    if (response.kind === 'error') return { kind: 'notAuthorized', error: response.error }
    return completeWithCode(transaction, response.code, session).catch((error: unknown) =>
      resultOfError(error, transaction)
    )
  }

  return async function completeLogin(request) {
    const { response, browserId } = request
    // RFC 9700 section 4.7: before the code is sent to the provider, check that this browser started the login.
    const opened = transactions.open(response.state, browserId)
    if (opened.kind === 'foreign') return opened
    const { returnTo, prompt } = opened.kind === 'valid' ? opened.transaction : opened
    try {
      const result =
        opened.kind === 'valid' ? await complete(opened.transaction, request) : await findWayOn(opened, request)
      return { ...result, returnTo, prompt }
    } catch (error) {
      return { kind: 'failed', error, returnTo, prompt }
    }
  }
}

/** Creates the functions that start a session in the browser with the tokens of a login. */
function createSessionStart({ idp, codeExchanges, sessions, sessionCookie, now }: CompleteLoginDependencies) {
  /** Returns the newest known record of the browser's session. Returns undefined if there is no session, or if it is over. */
  async function currentSession(session: CookieSession | undefined): Promise<SessionRecord | undefined> {
    if (!session) return undefined
    // A session that cannot be read must not prevent a new login.
    return liveSession(sessions, session).catch((error: unknown) => {
      ignoreUnavailable(error)
      const known = sessions.known(session.id)
      return known.kind === 'over' ? undefined : known.record
    })
  }

  /** True if this login has created a session, which may be over. Also true if the store cannot be read now. */
  async function wasCompleted(id: string): Promise<boolean> {
    const login = { id: id.slice(0, ID_LENGTH), rev: 0 }
    return sessions.current(login).then(
      ({ kind }) => kind !== 'unavailable',
      () => true
    )
  }

  async function completeWithCode(
    transaction: LoginTransaction,
    code: string,
    session: CookieSession | undefined
  ): Promise<CallbackResult> {
    const exchange = await codeExchanges.exchange(transaction, code, (denial, identity) =>
      endDenied(denial, identity, session)
    )
    if (exchange.kind === 'interrupted') return { kind: 'throttled', cause: exchange.cause, retry: 'login' }
    if (!('record' in exchange) && exchange.kind !== 'used') return exchange
    const live = await currentSession(session)
    if (exchange.kind === 'used') return { kind: live ? 'kept' : 'used' }
    // If the callback is repeated, `exchange` returns the session that an earlier callback created. The browser then keeps its
    // current session, unless the current session is older than the returned one. If the current session is not older, it is the
    // same session, perhaps refreshed since, or the session of a later login.
    if (live && exchange.kind === 'repeated' && !isOlder(live, exchange.record)) return { kind: 'kept' }
    const began = transaction.expiresAt - LOGIN_MAX_AGE_SECONDS * 1000
    return startSession(exchange, isSibling(live, exchange.record, began) ? undefined : session)
  }

  /**
   * Ends the session of the browser if it belongs to the account that is no longer allowed. Its refreshes may have no ID token, so
   * it could otherwise last for long.
   */
  async function endDenied(denial: Denial, identity: Identity | undefined, session: CookieSession | undefined) {
    // A sign-in that was not strong or recent enough says nothing about the account.
    if (!identity || isWeakness(denial)) return
    const live = await currentSession(session)
    if (!live || !isSameUser(live.identity, identity)) return
    const { record = live } = await sessions.end(live, denial)
    revokeInBackground(idp, record.fields.refresh_token)
  }

  async function startSession(
    { kind, record, scopesMissing }: Extract<CodeExchange, { readonly record: SessionRecord }>,
    replaced: CookieSession | undefined
  ): Promise<CallbackResult> {
    let sealed: readonly string[]
    try {
      sealed = sessionCookie.seal(record)
    } catch (error) {
      revokeInBackground(idp, record.fields.refresh_token)
      throw error
    }
    // Log out the replaced session. Otherwise a copy of its cookie would stay valid, and a response that is still in progress
    // could set the cookie again. If the logout cannot be stored, the store repeats it in the background.
    if (replaced && replaced.id !== record.id) await sessions.end(replaced, { reason: 'replaced' })
    return {
      kind: 'signedIn',
      session: record,
      sealed,
      succeededAt: now(),
      isRepeated: kind === 'repeated',
      scopesMissing
    }
  }

  return { currentSession, wasCompleted, completeWithCode }
}

// A browser that restores its tabs begins the logins of all of them within this time.
const SIBLING_MS = 60_000

/**
 * True for the session of another tab, in which the same user has signed in since this login began, or shortly before. It must not
 * end: a restored browser begins a login in each of its tabs, and the pages that the others are opening would get 401. Without the
 * scope `openid`, no user is known, and a session that began much later may be that of another user.
 */
function isSibling(live: SessionRecord | undefined, { identity }: SessionRecord, began: number): boolean {
  if (live === undefined || live.loggedInAt <= began - SIBLING_MS) return false
  if (identity === undefined && live.identity === undefined) return live.loggedInAt < began + SIBLING_MS
  return isSameUser(live.identity, identity)
}

function isSameUser(one: Identity | undefined, other: Identity | undefined): boolean {
  return one !== undefined && one.iss === other?.iss && one.sub === other.sub
}

function isOlder(session: SessionRecord, other: SessionRecord): boolean {
  return session.id !== other.id && session.loggedInAt < other.loggedInAt
}
