import type { Context } from 'koa'

/** Redirects with 302 and without a body. The body of Koa's own redirect would contain the address with its `state`. */
export function redirect(ctx: Context, location: string): void {
  ctx.set('Location', location)
  ctx.body = null
  ctx.status = 302
}
