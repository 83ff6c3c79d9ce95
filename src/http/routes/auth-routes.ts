/** The routes under `/api/auth`, with the headers that all of them share and the middleware in front of each route. */
import Router from '@koa/router'
import type { Middleware } from 'koa'
import { AUTH_ROUTES, isAuthPath } from '../../config/addresses.js'
import { type Audience, requestOrigin } from '../edge/request-origin.js'
import { HttpError, methodNotAllowed } from '../errors/http-error.js'
import { tokensOf } from './require-tokens.js'
import type { Site } from './site.js'

interface AuthRoutesParts {
  readonly site: Pick<Site, 'origin'>
  readonly session: Middleware
  readonly requireTokens: Middleware
  readonly login: Middleware
  readonly callback: Middleware
  readonly logout: Middleware
  readonly profile: Middleware
  /** Undefined unless `platform.backChannelLogout` is on. */
  readonly backChannelLogout?: Middleware | undefined
  /** True in dual mode, in which `/api/auth/token` gives pages the public token. */
  readonly offersPublicToken: boolean
}

/** Creates the router. It is exported because a test compares its routes with the documentation. */
export function authRouter(parts: AuthRoutesParts): Router {
  const { site, session, requireTokens, login, callback, logout, backChannelLogout, profile, offersPublicToken } = parts
  const from = (audience: Audience) => requestOrigin(audience, { publicOrigin: site.origin })
  const router = new Router({ sensitive: true, strict: true })
  router.get(AUTH_ROUTES.login, from('login'), login)
  router.get(AUTH_ROUTES.callback, from('callback'), session, callback)
  router.get(AUTH_ROUTES.logout, from('logout'), session, logout)
  if (backChannelLogout) router.post(AUTH_ROUTES.backChannelLogout, backChannelLogout)
  router.get(AUTH_ROUTES.profile, from('pageData'), signInPage, session, requireTokens, profile)
  if (offersPublicToken) router.get(AUTH_ROUTES.token, from('pageData'), signInPage, session, requireTokens, token)
  else router.get(AUTH_ROUTES.token, noPublicToken)
  return router
}

export function authRoutes(parts: AuthRoutesParts): Middleware {
  // The router adds some fields to the context itself, but its type requires them. The cast removes this requirement.
  const routes = authRouter(parts).routes() as unknown as Middleware

  return function authRoutes(ctx, next) {
    if (!isAuthPath(ctx.path)) return next()
    for (const [name, value] of SHARED_HEADERS) ctx.res.setHeader(name, value)
    const method = parts.backChannelLogout && ctx.path === AUTH_ROUTES.backChannelLogout ? 'POST' : 'GET'
    if (ctx.method !== method) throw methodNotAllowed(method)
    return routes(ctx, next)
  }
}

/**
 * `GET /api/auth/token` returns the public token, which is the access token with fewer scopes that pages may use. No route
 * sends the internal token (the access token that stays on the server) to a browser.
 */
const token: Middleware = function token(ctx) {
  ctx.set('Pragma', 'no-cache')
  ctx.body = tokensOf(ctx).public
}

/**
 * Answers `/api/auth/token` in single mode. The error tells the author of a page that was written for dual mode why the
 * token is missing.
 */
const noPublicToken: Middleware = function noPublicToken() {
  const description = 'This route exists in dual mode only (mode: dual).'
  throw new HttpError({ status: 404, error: 'not_found', description })
}

/**
 * Shows the error page for 401 to a person who opens an address of data in a tab. Scripts still get an empty body (service
 * contract, section 7). A script may also ask for HTML, but its requests have another `Sec-Fetch-Mode`.
 */
const signInPage: Middleware = async function signInPage(ctx, next) {
  await next()
  if (ctx.status !== 401 || (ctx.get('Sec-Fetch-Mode') || 'navigate') !== 'navigate') return
  if (ctx.accepts('json', 'html') !== 'html') return
  throw new HttpError({ status: 401, error: 'unauthorized', description: 'Nobody is signed in in this browser.' })
}

const SHARED_HEADERS = Object.entries({
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  Vary: 'Cookie, Sec-Fetch-Site'
})
