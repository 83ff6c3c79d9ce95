/**
 * The routes under `/api/auth`, with the headers that they share and the middleware that runs before each route. Each
 * route that changes a session or asks the provider has a separate file. The other routes are in this file.
 *
 * - `login`, `callback`, `logout`, `profile`, `backchannel-logout-route`: one route each; `demo-routes`: those of a demo
 * - `require-tokens`: finds and refreshes the session of a request, for these routes and for custom ones
 * - `custom-routes`, `custom-route-session`, `extension`: what custom routes use, their `ctx.session`, and how they are loaded
 */
import type { Middleware } from 'koa'
import { AUTH_ROUTES, isAuthPath } from '../../config/types/urls.js'
import { clientModule } from '../../pages/index.js'
import { HttpError, methodNotAllowed } from '../errors/http-error.js'
import { checkOrigin, type RoutePolicy } from '../every-request/request-origin.js'
import type { Services } from '../middleware-services.js'
import { sendContent, setDefaultHeaders } from '../request/response-head.js'
import { backchannelLogout } from './backchannel-logout-route.js'
import { callback } from './callback.js'
import { login } from './login.js'
import { logout } from './logout.js'
import { profile } from './profile.js'
import { createRequireTokens, tokensOf } from './require-tokens.js'

interface Route {
  readonly methods: readonly string[]
  readonly handle: Middleware
}

/**
 * Returns the routes by their paths. Each one accepts exactly one spelling of its path, because a reverse proxy's rules for this path
 * might not match other spellings. It is exported because a test compares the routes with the documentation.
 */
export function authRoutesByPath(services: Services): ReadonlyMap<string, Route> {
  const { site, mode, backchannelLogout: loading } = services
  const refreshSession = createRequireTokens(services)
  const from = (policy: RoutePolicy, handle: Middleware): Route => ({
    methods: GET_ONLY,
    handle(ctx, next) {
      checkOrigin(ctx, policy, { publicOrigin: site.origin })
      return handle(ctx, next)
    }
  })
  const pageData = (handle: Middleware) => from('pageData', (ctx, next) => refreshSession(ctx, () => handle(ctx, next)))
  const routes = new Map<string, Route>([
    [AUTH_ROUTES.login, from('login', login(services))],
    [AUTH_ROUTES.callback, from('callback', callback(services))],
    [AUTH_ROUTES.logout, from('logout', logout(services))],
    [AUTH_ROUTES.profile, pageData(profile(services))],
    [AUTH_ROUTES.token, mode.offersPublicToken ? pageData(token) : { methods: GET_ONLY, handle: noPublicToken }],
    [AUTH_ROUTES.client, { methods: ['GET', 'HEAD'], handle: client }]
  ])
  if (loading) {
    routes.set(AUTH_ROUTES.backchannelLogout, { methods: ['POST'], handle: backchannelLogout(loading, services) })
  }
  return routes
}

export function authRoutes(services: Services): Middleware {
  const routes = authRoutesByPath(services)

  return function authRoutes(ctx, next) {
    if (!isAuthPath(ctx.path)) return next()
    if (ctx.path === AUTH_ROUTES.token) setDefaultHeaders(ctx, SHARED_HEADERS)
    else ctx.set(SHARED_HEADERS)
    const route = routes.get(ctx.path)
    // Custom routes below `/api/auth` can accept only GET, like the routes of this server.
    if (!route && ctx.method === 'GET') return next()
    if (!route) throw new HttpError('not_found')
    if (ctx.method === 'POST' && ctx.path === AUTH_ROUTES.callback) throw formPost()
    const { methods, handle } = route
    if (!methods.includes(ctx.method)) throw methodNotAllowed(methods.join(', '))
    return handle(ctx, next)
  }
}

const GET_ONLY = ['GET']

/**
 * The error for a callback with `response_mode=form_post`. Browsers do not send the login cookie with a POST from another site, so
 * such a callback cannot be accepted.
 */
function formPost(): HttpError {
  const description =
    'The identity provider sent its response with POST (form_post). Set the response mode of the client at the provider to query. At Apple, request neither the scope name nor email.'
  return methodNotAllowed(GET_ONLY.join(', '), description)
}

/**
 * `GET /api/auth/token` returns the public token, the access token with fewer scopes, which pages may use. No route
 * sends the internal token (the access token that stays on the server) to a browser.
 */
const token: Middleware = function token(ctx) {
  // This is the most frequent request, so it does without Koa's slower functions.
  sendContent(ctx, TOKEN_HEADERS, JSON.stringify(tokensOf(ctx).public))
}

/**
 * Responds to `/api/auth/token` in single mode. The error tells the author of a page that was written for dual mode why
 * the token is missing.
 */
const noPublicToken: Middleware = function noPublicToken() {
  const description = 'This route exists in dual mode only (mode: dual).'
  throw new HttpError('not_found', { description })
}

/**
 * `GET /api/auth/client.js` returns a module for pages. The module is the same for all users, so the browser may cache
 * it. The browser must check for changes before each use, because a page and its module must have the same version
 * after an update of the server.
 */
const client: Middleware = function client(ctx) {
  ctx.remove('Vary')
  ctx.set('Cache-Control', 'no-cache')
  ctx.type = 'js'
  ctx.etag = clientModule.etag
  ctx.status = 200
  if (ctx.fresh) ctx.status = 304
  else ctx.body = clientModule.text
}

const SHARED_HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  Vary: 'Cookie, Sec-Fetch-Site'
}

const JSON_TYPE = 'application/json; charset=utf-8'
const TOKEN_HEADERS = Object.entries({ ...SHARED_HEADERS, Pragma: 'no-cache', 'Content-Type': JSON_TYPE })
