import type { Context } from 'koa'

/** 302 without a body: Koa's own redirect would repeat the address, and with it the `state`, in one. */
export function redirect(ctx: Context, location: string): void {
  ctx.set('Location', location)
  ctx.body = null
  ctx.status = 302
}
