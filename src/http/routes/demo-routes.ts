/**
 * Two routes with which the starter page of a demo shows that many requests cause one refresh. They exist only if the
 * identity provider is the built-in demo, and only then is this file loaded.
 */
import type { Context, Middleware } from 'koa'
import { isLocalRequest } from '../../config/addresses.js'
import { requestOrigin } from '../edge/request-origin.js'
import { sessionRecord, writeSession } from './session.js'

/** The facts about the demo identity provider that its routes need. */
export interface DemoProvider {
  readonly calls: {
    /** The number of token requests with a refresh token. */
    readonly refreshToken: number
    /** The number of them with a refresh token that was already spent. Each of them ended a login. */
    readonly reusedRefreshToken: number
  }
}

interface DemoRoutesParts {
  readonly demo: DemoProvider
  readonly publicOrigin: string
  /** The middleware that opens the session of a request. */
  readonly session: Middleware
  /** The middleware that sets the newest session, or responds with 401. */
  readonly requireTokens: Middleware
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/**
 * Creates the middleware with the routes of a demo. `POST /demo/expire` makes the access tokens of this browser's
 * session expire, so that its next request causes a refresh. It responds with 204, or 401 if nobody is signed in.
 * `GET /demo/calls` returns the number of refresh requests that the demo identity provider has received. For requests from other
 * machines, the routes do not exist.
 */
export function demoRoutes({ demo, publicOrigin, session, requireTokens, now }: DemoRoutesParts): Middleware {
  const checkOrigin = requestOrigin('proxy', { publicOrigin })

  return function demoRoutes(ctx, next) {
    const route = `${ctx.method} ${ctx.path}`
    if (!isLocalRequest(ctx.req, publicOrigin)) return next()
    if (route === 'GET /demo/calls') return checkOrigin(ctx, () => sendCalls(ctx))
    if (route !== 'POST /demo/expire') return next()
    return checkOrigin(ctx, () => session(ctx, () => requireTokens(ctx, () => expire(ctx))))
  }

  async function sendCalls(ctx: Context) {
    const { refreshToken, reusedRefreshToken } = demo.calls
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { refreshToken, reusedRefreshToken }
  }

  async function expire(ctx: Context) {
    const record = sessionRecord(ctx)
    if (!record) return
    writeSession(ctx, { ...record, fields: { ...record.fields, expires_at: now() - 1 } })
    ctx.set('Cache-Control', 'no-store')
    ctx.status = 204
  }
}
