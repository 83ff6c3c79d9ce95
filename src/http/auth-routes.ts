/** The routes under `/api/auth`, with the headers that all of them share and the layers in front of each. */
import Router from '@koa/router'
import type { Middleware } from 'koa'
import { HttpError, methodNotAllowed } from './errors.js'
import { navigationOnly, noForeignSubresource, noPrefetch, sameOriginOnly } from './fetch-metadata.js'
import { token } from './token.js'

export const AUTH_PATH = '/api/auth'

export interface AuthLayers {
  readonly session: Middleware
  readonly requireTokens: Middleware
  readonly login: Middleware
  readonly callback: Middleware
  readonly logout: Middleware
  readonly profile: Middleware
  /** Dual mode only (contract section 4). */
  readonly offersPublicToken: boolean
}

export function authRouter(layers: AuthLayers): Router {
  const { session, requireTokens, login, callback, logout, profile, offersPublicToken } = layers
  const router = new Router({ prefix: AUTH_PATH, sensitive: true, strict: true })
  router.get('/login', noPrefetch, navigationOnly, login)
  router.get('/callback', session, callback)
  router.get('/logout', noPrefetch, noForeignSubresource, session, logout)
  router.get('/profile', sameOriginOnly, session, requireTokens, profile)
  if (offersPublicToken) router.get('/token', sameOriginOnly, session, requireTokens, token)
  else router.get('/token', noPublicToken)
  return router
}

export function authRoutes(layers: AuthLayers): Middleware {
  // The type of the router's middleware requires fields of the context that this middleware adds itself.
  const routes = authRouter(layers).routes() as unknown as Middleware

  return function authRoutes(ctx, next) {
    if (!isAuthPath(ctx.path)) return next()
    for (const [name, value] of SHARED_HEADERS) ctx.res.setHeader(name, value)
    if (ctx.method !== 'GET') throw methodNotAllowed('GET')
    return routes(ctx, next)
  }
}

/** A page written for dual mode asks for this route. The answer says why it is missing (contract section 4). */
const noPublicToken: Middleware = function noPublicToken() {
  throw new HttpError(404, 'not_found', 'This route exists in dual mode only (mode: dual).')
}

export function isAuthPath(path: string): boolean {
  return path.startsWith(AUTH_PATH) && (path.length === AUTH_PATH.length || path[AUTH_PATH.length] === '/')
}

const SHARED_HEADERS = Object.entries({
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  Vary: 'Cookie, Sec-Fetch-Site'
})
