/**
 * Provides `ctx.session` for custom routes. It uses koa-session, and stores the session in the encrypted cookies or,
 * with `session.store: redis`, in Redis. koa-session hashes the session twice for each request, so the built-in routes
 * do not use it.
 */
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import createKoaSession from 'koa-session'
import type { SessionFields, SessionRecord } from '../../cookie/session-record.js'
import type { Services } from '../middleware-services.js'
import { requestLog } from '../request/request.js'
import { removeSession, sessionRecord, writeSession } from '../request/session.js'

// koa-session requires a key for an external store. Here each request has a separate store, so the key can be any
// constant.
const STORE_KEY = 'browser'

const HAS_SESSION = Symbol('has ctx.session')
type Marked = Context & { [HAS_SESSION]?: true }

/**
 * Creates the middleware. It must run after `requireTokens`. If the handlers have changed the session, it saves the session after
 * they have run.
 */
export function customRouteSession(services: Services): Middleware {
  const { config, site, sessions, userSessions, log } = services
  const { cookies } = site

  class BrowserStore {
    readonly #ctx: Context
    #record: SessionRecord | undefined

    constructor(ctx: Context) {
      this.#ctx = ctx
    }

    async get(): Promise<SessionFields | undefined> {
      this.#record = sessionRecord(this.#ctx)
      // The handlers get a copy, because all requests with the same cookie share one opened record.
      return structuredClone(this.#record?.fields)
    }

    async set(_key: string, stored: object): Promise<void> {
      const ctx = this.#ctx
      const record = this.#record
      if (!record) throw new TypeError('ctx.session can be saved only behind requireTokens')
      const { id } = record
      // No cookie can be set after the headers were sent.
      if (ctx.headerSent) {
        const reason = 'response_started'
        requestLog(ctx, log).warn({ event: 'session_not_saved', reason }, 'changes to ctx.session are lost')
        return
      }
      // The cookie gets a new lifetime, so the session must stay in the lists of its user as long.
      const now = sessions.now()
      const joinsLists = userSessions?.shouldJoin(record, now)
      if (joinsLists) userSessions?.joinAgain(id)
      const changed = await sessions.change(joinsLists ? { ...record, listedAt: now } : record, stored)
      if (!changed || sessions.known(id).kind === 'over') return
      writeSession(ctx, changed)
    }

    async destroy(): Promise<void> {
      removeSession(this.#ctx)
      // After this call, koa-session clears the first cookie through `ctx.cookies`. Behind a proxy that terminates TLS,
      // `ctx.cookies` throws an error for a Secure cookie unless this property is set.
      this.#ctx.cookies.secure = cookies.secure
    }
  }

  // koa-session defines `ctx.session` for one application. If the server is mounted in another application, the contexts belong
  // to that one.
  const middlewareOf = new WeakMap<Koa, Middleware>()
  function koaSessionFor(app: Koa): Middleware {
    const known = middlewareOf.get(app)
    if (known) return known
    const created = createKoaSession(app, {
      key: cookies.session,
      maxAge: config.session.inactivityTimeoutSeconds * 1000,
      ContextStore: BrowserStore,
      externalKey: { get: () => STORE_KEY, set: () => undefined },
      genid: () => STORE_KEY,
      signed: false,
      httpOnly: true,
      overwrite: true,
      sameSite: 'lax',
      secure: cookies.secure
    })
    middlewareOf.set(app, created)
    return created
  }

  return function customRouteSession(ctx, next) {
    const marked: Marked = ctx
    // If `requireTokens` runs a second time for a request, it must not discard the changes that earlier handlers made.
    if (marked[HAS_SESSION]) return next()
    marked[HAS_SESSION] = true
    return koaSessionFor(ctx.app)(ctx, next)
  }
}
