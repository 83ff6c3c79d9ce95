/**
 * `ctx.session` for the routes of a program: the middleware of koa-session, whose store is the encrypted cookies. It costs
 * two hashes of the session for each request, so the routes of this server do without it.
 */
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import createKoaSession from 'koa-session'
import type { Auth } from '../auth/index.js'
import type { Config } from '../config/settings.js'
import { type SessionFields, type SessionRecord, withOwnFields } from '../session/record.js'
import type { RequestLog } from './request.js'
import { removeSession, sessionRecord, writeSession } from './session.js'
import type { Site } from './site.js'

export interface ProgramSessionParts {
  readonly config: Pick<Config, 'session' | 'refresh'>
  readonly site: Pick<Site, 'cookies'>
  readonly auth: Pick<Auth, 'newest' | 'isLoggedOut'>
  readonly requestLog: RequestLog
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

// koa-session requires an id for an external store. The store is the request itself, so any constant works.
const STORE_KEY = 'browser'

const HAS_SESSION = Symbol('has ctx.session')
type Marked = Context & { [HAS_SESSION]?: true }

/** Must run behind `session` and `requireTokens`. The session is saved after the handlers, if they changed it. */
export function programSession(app: Koa, parts: ProgramSessionParts): Middleware {
  const { config, site, auth, requestLog, now } = parts
  const { cookies } = site
  const keepMs = config.refresh.keepSeconds * 1000

  class BrowserStore {
    readonly #ctx: Context
    #record: SessionRecord | undefined
    #readAt = 0

    constructor(ctx: Context) {
      this.#ctx = ctx
    }

    async get(): Promise<SessionFields | undefined> {
      this.#record = sessionRecord(this.#ctx)
      this.#readAt = now()
      // The handlers get a copy, because later requests with the same cookie share the opened record.
      return structuredClone(this.#record?.fields)
    }

    async set(_key: string, stored: object): Promise<void> {
      const ctx = this.#ctx
      const record = this.#record
      if (!record) throw new TypeError('ctx.session can be saved only behind requireTokens')
      const { id, loggedInAt } = record
      // Another request may have refreshed the tokens meanwhile. Its result is kept for at least keepSeconds. After that
      // time this server cannot know whether the refresh token of this request is still the newest one.
      if (ctx.headerSent || now() - this.#readAt > keepMs) {
        const reason = ctx.headerSent ? 'response_started' : 'request_too_long'
        requestLog(ctx).warn({ event: 'session_not_saved', reason }, 'changes of ctx.session are lost')
        return
      }
      const newest = await auth.newest(record)
      if (await auth.isLoggedOut(id)) return
      writeSession(ctx, { ...newest, id, loggedInAt, fields: withOwnFields(newest.fields, stored) })
    }

    async destroy(): Promise<void> {
      removeSession(this.#ctx)
      // After this call koa-session clears the first cookie itself, with the cookies of Koa. Behind a proxy that ends TLS,
      // those would refuse to set a Secure cookie.
      this.#ctx.cookies.secure = cookies.secure
    }
  }

  const koaSession = createKoaSession(app, {
    key: cookies.session,
    maxAge: config.session.maxAgeSeconds * 1000,
    ContextStore: BrowserStore,
    externalKey: { get: () => STORE_KEY, set: () => undefined },
    genid: () => STORE_KEY,
    signed: false,
    httpOnly: true,
    overwrite: true,
    sameSite: 'lax',
    secure: cookies.secure
  })

  return function programSession(ctx, next) {
    const marked: Marked = ctx
    // A second requireTokens in the same chain must not discard the changes of the handlers before it.
    if (marked[HAS_SESSION]) return next()
    marked[HAS_SESSION] = true
    return koaSession(ctx, next)
  }
}
