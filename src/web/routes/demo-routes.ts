/**
 * Two routes with which the starter page of a demo shows that many requests cause only one refresh. This file is loaded
 * only if the identity provider is the built-in demo.
 */
import type { Context, Middleware } from 'koa'
import { isLocalRequest } from '../../config/types/urls.js'
import { checkOrigin } from '../every-request/request-origin.js'
import type { DemoProvider, Services } from '../middleware-services.js'
import { sessionRecord, writeSession } from '../request/session.js'
import { createRequireTokens } from './require-tokens.js'

/**
 * Creates the middleware with the routes of a demo. `POST /demo/expire` makes the access tokens of this browser's
 * session expire, so that its next request causes a refresh. It responds with 204, or 401 if nobody is signed in.
 * `GET /demo/calls` returns the number of refresh requests that the demo identity provider has received. For requests
 * from other machines, the routes do not exist.
 */
export function demoRoutes(services: Services, demo: DemoProvider): Middleware {
  const { now, site } = services
  const refreshSession = createRequireTokens(services)

  return function demoRoutes(ctx, next) {
    const route = `${ctx.method} ${ctx.path}`
    const isOurs = route === 'GET /demo/calls' || route === 'POST /demo/expire'
    if (!isOurs || !isLocalRequest(ctx.req, site.origin)) return next()
    checkOrigin(ctx, 'proxyWithoutLinks', { publicOrigin: site.origin })
    return ctx.method === 'GET' ? sendCalls(ctx) : refreshSession(ctx, () => expire(ctx))
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
