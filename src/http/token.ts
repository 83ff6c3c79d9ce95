import type { Middleware } from 'koa'
import { tokensOf } from './require-tokens.js'

/**
 * `GET /api/auth/token` returns the public token. No route sends the internal token to a browser (service contract,
 * section 4, rule 4).
 */
export const token: Middleware = function token(ctx) {
  ctx.set('Pragma', 'no-cache')
  ctx.body = tokensOf(ctx).public
}
