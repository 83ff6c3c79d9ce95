/** The routes under `/api/auth`, with the headers that all of them share and the layers in front of each. */
import Router from '@koa/router'
import type { Middleware } from 'koa'
import compose from 'koa-compose'
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

export function authRoutes(layers: AuthLayers): Middleware {
  const { session, requireTokens, login, callback, logout, profile, offersPublicToken } = layers
  const router = new Router({ prefix: AUTH_PATH, sensitive: true, strict: true })
  router.get('/login', noPrefetch, navigationOnly, login)
  router.get('/callback', session, callback)
  router.get('/logout', noPrefetch, noForeignSubresource, session, logout)
  router.get('/profile', sameOriginOnly, session, requireTokens, profile)
  if (offersPublicToken) router.get('/token', sameOriginOnly, session, requireTokens, token)
  else router.get('/token', noPublicToken)
  // None of these paths has a parameter, so each route is looked up by its path. The router would try the pattern of every
  // route at every request. Its type asks for `params`, which nothing here reads.
  const routes = new Map(router.stack.map(({ path, stack }) => [path, compose(stack) as unknown as Middleware]))

  return function authRoutes(ctx, next) {
    if (!isAuthPath(ctx.path)) return next()
    for (const [name, value] of SHARED_HEADERS) ctx.res.setHeader(name, value)
    if (ctx.method !== 'GET') throw methodNotAllowed('GET')
    const route = routes.get(ctx.path)
    return route ? route(ctx, next) : next()
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
