import type { Middleware } from 'koa'
import { tokensOf } from './require-tokens.js'

/** `GET /api/auth/token` returns only the public token (contract section 4, rule 4). */
export const token: Middleware = function token(ctx) {
  ctx.set('Pragma', 'no-cache')
  ctx.body = tokensOf(ctx).public
}
