import type { Context } from 'koa'

/**
 * Redirects with 302 and without a body. Koa's own redirect would repeat the address in the body, including the
 * `state`.
 */
export function redirect(ctx: Context, location: string): void {
  ctx.set('Location', location)
  ctx.body = null
  ctx.status = 302
}
