/** Tells who a request may come from. The starter page and the demo are for the operator, and not for the whole network. */
import type { Context } from 'koa'

const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/

/** True if the connection comes from this machine. A client cannot forge this. */
export function hasLoopbackPeer({ req }: Pick<Context, 'req'>): boolean {
  return LOOPBACK.test(req.socket.remoteAddress ?? '')
}

/**
 * True if the connection comes from this machine, or if the request is for the host of the callback URL.
 * @param publicOrigin the origin of the callback URL
 */
export function isForOperator(ctx: Pick<Context, 'req'>, publicOrigin: string): boolean {
  return hasLoopbackPeer(ctx) || ctx.req.headers.host === new URL(publicOrigin).host
}
