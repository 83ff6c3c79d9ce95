/**
 * Opens the session in the cookies of a request, and sets the cookies again if the session has changed. The built-in
 * routes use these functions. Custom routes use `ctx.session` (custom-route-session.ts).
 */
import type { Context } from 'koa'
import type { CookieNames } from '../../config/site.js'
import { readCookie } from '../../cookie/request-cookies.js'
import { type CookieSession, hasTokens, type SessionRecord } from '../../cookie/session-record.js'
import { LOGIN_MAX_AGE_SECONDS } from '../../login/transaction.js'
import type { Services } from '../middleware-services.js'

interface RequestSession {
  current: CookieSession | undefined
  readonly services: Services
}

// The session is a property of the context. A WeakMap would keep each context in memory until the next full garbage
// collection.
const SESSION = Symbol('session')
type WithSession = Context & { [SESSION]?: RequestSession }

/**
 * Opens the session in the cookies of a request. If this request has already replaced the session, for example by a refresh,
 * returns the new session. Returns undefined if there is no session. With `session.store: redis`, the result is only a reference
 * to the session in Redis until `useSession` is called.
 */
export function openSession(ctx: Context, services: Services): CookieSession | undefined {
  const request: WithSession = ctx
  request[SESSION] ??= { current: services.sessionCookie.open(ctx.req.headers.cookie ?? ''), services }
  return request[SESSION].current
}

/** Returns the session of this request. Call it only after `requireTokens` has run. Returns undefined if there is no session. */
export function sessionRecord(ctx: Context): SessionRecord | undefined {
  const session = (ctx as WithSession)[SESSION]?.current
  return session && hasTokens(session) ? session : undefined
}

/** Sets the session to which the cookie of this request refers. The cookie does not change. */
export function useSession(ctx: Context, record: SessionRecord): void {
  requestSession(ctx).current = record
}

/**
 * Sets the cookies of `record` in this response, even if it becomes an error response. Replaces session cookies that
 * this response has set before.
 * @param sealed the cookie values of `record`, if it has been sealed already
 * @throws {SessionTooLargeError} and changes nothing if the session does not fit into its cookies
 */
export function writeSession(ctx: Context, record: SessionRecord, sealed?: readonly string[]): void {
  const { sessionCookie, metrics } = requestSession(ctx).services
  const chunks = sealed ?? sessionCookie.seal(record)
  metrics.observe('session_cookie_bytes', chunks.join('').length)
  replaceSession(ctx, record, chunks)
}

/** Clears the session's cookies in the browser, even if they cannot be decrypted. */
export function removeSession(ctx: Context): void {
  replaceSession(ctx, undefined, [])
}

function replaceSession(ctx: Context, record: SessionRecord | undefined, chunks: readonly string[]): void {
  const session = requestSession(ctx)
  const { sessionCookie, site } = session.services
  const { secure } = site.cookies
  session.current = record
  withholdCookies(ctx, sessionCookie.names)
  const lifetimeSeconds = record ? Math.ceil(sessionCookie.lifetimeMs(record) / 1000) : 0
  const sent = sessionCookie.sentNames(ctx.get('Cookie'))
  for (const [index, name] of sessionCookie.names.entries()) {
    const chunk = chunks[index]
    if (chunk !== undefined) setCookie(ctx, name, chunk, lifetimeSeconds, secure)
    // No session can be opened without its first chunk. This chunk is cleared even if the browser did not send it,
    // because another tab may have logged in since the browser sent this request.
    else if (index === 0 || sent.includes(name)) setCookie(ctx, name, '', 0, secure)
  }
}

function requestSession(ctx: Context): RequestSession {
  const session = (ctx as WithSession)[SESSION]
  if (!session) throw new Error('The session of this request was not opened.')
  return session
}

/**
 * Appends a Set-Cookie header (RFC 6265 section 4.1). The names and values that this server uses need no escaping. The
 * provider, which is another site, redirects the browser to the callback, and this request needs the cookies. With
 * `SameSite=Strict`, browsers would not send them.
 * @param maxAgeSeconds 0 deletes the cookie
 */
export function setCookie(ctx: Context, name: string, value: string, maxAgeSeconds: number, secure: boolean): void {
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  ctx.append('Set-Cookie', `${name}=${value}; ${attributes}`)
  // A response that sets a cookie is meant for one user and must not be cached (RFC 9111 section 7.3).
  ctx.set('Cache-Control', 'no-store')
}

/**
 * Removes the Set-Cookie headers for these names from the response, so that the cookies in the browser do not change.
 */
export function withholdCookies(ctx: Context, names: readonly string[]): void {
  const lines = [ctx.res.getHeader('Set-Cookie') ?? []].flat().map(String)
  ctx.res.removeHeader('Set-Cookie')
  const others = lines.filter(line => !names.some(name => line.startsWith(`${name}=`)))
  if (others.length > 0) ctx.set('Set-Cookie', others)
}

/**
 * The login cookie identifies the browser that started a login. All tabs of the browser share this cookie. It also
 * records the time of the last successful login. If the session cookie is missing soon after that time, the browser did
 * not keep it.
 */
export interface LoginCookie {
  /** The random value that identifies this browser. Login transactions are bound to it. */
  readonly browserId: string
  /**
   * Time of the last successful login in milliseconds since the epoch. It is undefined if there was no login, if the
   * browser has started another login since then, or if the server has ended the session.
   */
  readonly succeededAt: number | undefined
}

const LOGIN_COOKIE = /^([A-Za-z0-9_.]{43})(?:\.(\d{1,15}))?$/

export function readLoginCookie(ctx: Context, names: CookieNames): LoginCookie | undefined {
  const [, browserId, succeededAt] = LOGIN_COOKIE.exec(readCookie(ctx.get('Cookie'), names.login) ?? '') ?? []
  return browserId ? { browserId, succeededAt: succeededAt === undefined ? undefined : Number(succeededAt) } : undefined
}

export function writeLoginCookie(ctx: Context, names: CookieNames, { browserId, succeededAt }: LoginCookie): void {
  const value = succeededAt === undefined ? browserId : `${browserId}.${succeededAt}`
  setCookie(ctx, names.login, value, LOGIN_MAX_AGE_SECONDS, names.secure)
}

export function clearLoginCookie(ctx: Context, names: CookieNames): void {
  setCookie(ctx, names.login, '', 0, names.secure)
}
