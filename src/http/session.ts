/**
 * The session as koa-session's ContextStore, its storage being the browser. Handlers see `ctx.session` with the
 * contract's fields; it is written when tokens changed and at no other time, so nothing can put an old one back.
 */
import { randomBytes } from 'node:crypto'
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import createKoaSession from 'koa-session'
import type { Metrics } from '../metrics/metrics.js'
import type { SessionFields, SessionRecord } from '../session/record.js'
import type { SessionCookie } from '../session/session-cookie.js'
import { type CookieNames, clearCookie, setCookie } from './cookies.js'

export interface SessionParts {
  readonly sessionCookie: SessionCookie
  readonly cookies: CookieNames
  readonly maxAgeSeconds: number
  readonly now: () => number
  readonly metrics: Pick<Metrics, 'sessionWritten'>
}

// On the context itself: in a WeakMap each would stay until the next full collection, and the context with it.
const RECORD = Symbol('session record')
type WithRecord = Context & { [RECORD]?: SessionRecord | undefined }

// koa-session wants an id for an external store; ours is the request itself, so that any constant will do.
const STORE_KEY = 'browser'

/** Opens the session of a request; without this layer a request has none. */
export function session(app: Koa, parts: SessionParts): Middleware {
  const { sessionCookie } = parts
  extendContext(app, parts)
  return function session(ctx, next) {
    const record = sessionCookie.open(ctx.req.headers.cookie ?? '')
    if (record) setRecord(ctx, record)
    return next()
  }
}

/**
 * koa-session gives the application's context its `session`. Its middleware is not used: all it would do is read the
 * session from the store, hash it twice to see whether it changed, and write it back. We know when it changed.
 */
function extendContext(app: Koa, { sessionCookie, cookies, maxAgeSeconds, now, metrics }: SessionParts): void {
  class BrowserStore {
    readonly #ctx: Context

    constructor(ctx: Context) {
      this.#ctx = ctx
    }

    // koa-session insists on it, but only its middleware would call it.
    async get(): Promise<SessionFields | undefined> {
      return sessionRecord(this.#ctx)?.fields
    }

    // koa-session's own `_expire` and `_maxAge` are left out: the age is sealed by our clock, and the setting decides it.
    async set(_key: string, { _expire, _maxAge, ...fields }: Record<string, unknown>): Promise<void> {
      const ctx = this.#ctx
      const record = { ...(sessionRecord(ctx) ?? newSession(now())), fields }
      const chunks = sessionCookie.seal(record)
      const lifetimeSeconds = Math.ceil(sessionCookie.lifetimeMs(record) / 1000)
      metrics.sessionWritten(chunks.join('').length)
      const sent = sessionCookie.sentNames(ctx.get('Cookie'))
      for (const [index, name] of sessionCookie.names.entries()) {
        const chunk = chunks[index]
        if (chunk !== undefined) setCookie(ctx, name, chunk, lifetimeSeconds, cookies.secure)
        else if (sent.includes(name)) clearCookie(ctx, name, cookies.secure)
      }
    }

    async destroy(): Promise<void> {
      const ctx = this.#ctx
      for (const name of sessionCookie.sentNames(ctx.get('Cookie'))) clearCookie(ctx, name, cookies.secure)
      // koa-session clears the first name itself, through Koa's cookies; those look at the connection, which behind a
      // proxy is plain http, and would refuse to say Secure.
      ctx.cookies.secure = cookies.secure
    }
  }

  createKoaSession(app, {
    key: cookies.session,
    maxAge: maxAgeSeconds * 1000,
    ContextStore: BrowserStore,
    externalKey: { get: () => '', set: () => undefined },
    genid: () => STORE_KEY,
    autoCommit: false,
    signed: false,
    httpOnly: true,
    overwrite: true,
    sameSite: 'lax',
    secure: cookies.secure
  })
  fillWhenLookedAt(app)
}

/**
 * Only a program's own handlers look at `ctx.session`, so what koa-session makes of every session is made when they do.
 * koa-session leaves its property configurable for such.
 */
function fillWhenLookedAt({ context }: Koa): void {
  const { get, set } = Object.getOwnPropertyDescriptor(context, 'session') as Required<PropertyDescriptor>
  const filled = new WeakSet<Context>()
  Object.defineProperty(context, 'session', {
    get(this: Context) {
      const record = filled.has(this) ? undefined : sessionRecord(this)
      if (record) this.session = record.fields
      return get.call(this)
    },
    set(this: Context, value: unknown) {
      filled.add(this)
      set.call(this, value)
    },
    configurable: true
  })
}

function newSession(now: number): Omit<SessionRecord, 'fields'> {
  return { id: randomBytes(16).toString('base64url'), loggedInAt: now, issuedAt: now }
}

/** The session this request came with or was given since, or undefined. */
export function sessionRecord(ctx: Context): SessionRecord | undefined {
  return (ctx as WithRecord)[RECORD]
}

function setRecord(ctx: Context, record: SessionRecord | undefined): void {
  const withRecord: WithRecord = ctx
  withRecord[RECORD] = record
}

/** Sends `record` to the browser with this response, whatever becomes of the rest of it. Throws SessionTooLargeError. */
export async function writeSession(ctx: Context, record: SessionRecord): Promise<void> {
  setRecord(ctx, record)
  ctx.session = { ...record.fields }
  await ctx.session.save()
}

/** Takes the session's cookies back from the browser, readable or not. */
export async function removeSession(ctx: Context): Promise<void> {
  const { session } = ctx
  setRecord(ctx, undefined)
  ctx.session = null
  await session?.manuallyCommit()
}
