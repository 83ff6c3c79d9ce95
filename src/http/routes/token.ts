import type { Middleware } from 'koa'
import { tokensOf } from './require-tokens.js'

/**
 * `GET /api/auth/token` returns the public token, which is the access token with fewer scopes that pages may use. No route
 * sends the internal token (the access token that stays on the server) to a browser.
 */
export const token: Middleware = function token(ctx) {
  ctx.set('Pragma', 'no-cache')
  ctx.body = tokensOf(ctx).public
}
