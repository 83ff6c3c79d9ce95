/**
 * Opens the session in the cookies of a request, and sets the cookies again if the session has changed. The server's
 * own routes use these functions. Routes that a program has added use `ctx.session` (program-session.ts).
 */
import type { Context, Middleware } from 'koa'
import type { Metrics } from '../../metrics/metrics.js'
import { type CookieSession, hasTokens, type SessionRecord } from '../../session/record.js'
import type { SessionCookie } from '../../session/session-cookie.js'
import { clearCookie, setCookie, withholdCookies } from './cookies.js'
import type { Site } from './site.js'

export interface SessionParts {
  readonly sessionCookie: SessionCookie
  readonly site: Pick<Site, 'cookies'>
  readonly metrics: Pick<Metrics, 'sessionWritten'>
}

interface RequestSession {
  current: CookieSession | undefined
  readonly parts: SessionParts
}

// The session is a property of the context. A WeakMap would keep each context in memory until the next full garbage
// collection.
const SESSION = Symbol('session')
type WithSession = Context & { [SESSION]?: RequestSession }

/**
 * Creates the middleware that opens the session of a request.
 * @example router.get('/profile', session(parts), requireTokens(parts), handler)
 */
export function session(parts: SessionParts): Middleware {
  return function session(ctx, next) {
    const withSession: WithSession = ctx
    // If this middleware runs twice, the second run must keep the current session, because a refresh may have replaced the
    // session of the request.
    withSession[SESSION] ??= { current: parts.sessionCookie.open(ctx.req.headers.cookie ?? ''), parts }
    return next()
  }
}

/**
 * Returns the session of this request, or the session that replaced it during the request. Returns undefined without a
 * session. With `session.store: redis`, returns a reference until `useSession` is called.
 */
export function currentSession(ctx: Context): CookieSession | undefined {
  return (ctx as WithSession)[SESSION]?.current
}

/** Returns the session of this request behind `requireTokens`. Returns undefined without a session. */
export function sessionRecord(ctx: Context): SessionRecord | undefined {
  const session = currentSession(ctx)
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
  const session = requestSession(ctx)
  const { sessionCookie, site, metrics } = session.parts
  const { secure } = site.cookies
  const chunks = sealed ?? sessionCookie.seal(record)
  session.current = record
  metrics.sessionWritten(chunks.join('').length)
  withholdCookies(ctx, sessionCookie.names)
  const lifetimeSeconds = Math.ceil(sessionCookie.lifetimeMs(record) / 1000)
  const sent = sessionCookie.sentNames(ctx.get('Cookie'))
  for (const [index, name] of sessionCookie.names.entries()) {
    const chunk = chunks[index]
    if (chunk !== undefined) setCookie(ctx, name, chunk, lifetimeSeconds, secure)
    else if (sent.includes(name)) clearCookie(ctx, name, secure)
  }
}

/** Clears the session's cookies in the browser, even if they cannot be opened. */
export function removeSession(ctx: Context): void {
  const session = requestSession(ctx)
  const { sessionCookie, site } = session.parts
  const { secure } = site.cookies
  session.current = undefined
  withholdCookies(ctx, sessionCookie.names)
  const sent = sessionCookie.sentNames(ctx.get('Cookie'))
  for (const [index, name] of sessionCookie.names.entries()) {
    if (index === 0 || sent.includes(name)) clearCookie(ctx, name, secure)
  }
}

function requestSession(ctx: Context): RequestSession {
  const session = (ctx as WithSession)[SESSION]
  if (!session) throw new Error('This request has no session, because the middleware `session` did not run.')
  return session
}
