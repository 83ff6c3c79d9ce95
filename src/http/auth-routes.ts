/** Everything under `/api/auth`: what all of it shares, and which layers each route stands behind. */
import Router from '@koa/router'
import type { Middleware } from 'koa'
import compose from 'koa-compose'
import { methodNotAllowed } from './errors.js'
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

export function authRoutes(layers: AuthLayers): Middleware {
  const { session, requireTokens, login, callback, logout, profile, offersPublicToken } = layers
  const router = new Router({ prefix: AUTH_PATH, sensitive: true, strict: true })
  router.get('/login', noPrefetch, navigationOnly, login)
  router.get('/callback', session, callback)
  router.get('/logout', noPrefetch, noForeignSubresource, session, logout)
  router.get('/profile', sameOriginOnly, session, requireTokens, profile)
  if (offersPublicToken) router.get('/token', sameOriginOnly, session, requireTokens, token)
  // None of these paths has a parameter: what the router would look for at every request, with a pattern for each route,
  // is found once. The router's own type asks for `params`, which nothing here reads.
  const routes = new Map(router.stack.map(({ path, stack }) => [path, compose(stack) as unknown as Middleware]))

  return function authRoutes(ctx, next) {
    if (!isAuthPath(ctx.path)) return next()
    for (const [name, value] of SHARED_HEADERS) ctx.res.setHeader(name, value)
    if (ctx.method !== 'GET') throw methodNotAllowed('GET')
    const route = routes.get(ctx.path)
    return route ? route(ctx, next) : next()
  }
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
