import { randomUUID } from 'node:crypto'
import type { Context } from 'koa'
import type { Logger } from 'pino'

// Proxies send letters, digits and a few punctuation marks. Other characters could break a log line or a header, so an
// id that contains them is replaced.
const WELL_FORMED_ID = /^[\w.:+/=-]{1,128}$/

// W3C Trace Context section 3.2: version, trace id, parent id, flags. An id that contains only zeros, and the version
// ff, are invalid.
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/

// These values are properties of the context. A WeakMap would keep each context in memory until the next full garbage
// collection, and `ctx.state` belongs to the custom routes, too.
const ID = Symbol('request id')
const LOG = Symbol('request log')
const ROUTE = Symbol('route')
type IdentifiedContext = Context & { [ID]?: string; [LOG]?: Logger; [ROUTE]?: string }

/** Returns the value of `X-Request-Id` if it is well-formed, otherwise a new random id. */
export function requestId(ctx: IdentifiedContext): string {
  ctx[ID] ??= requestIdOf(ctx.get('X-Request-Id'))
  return ctx[ID]
}

/** @param sent the value of `X-Request-Id` */
export function requestIdOf(sent: string | string[] | undefined): string {
  return typeof sent === 'string' && WELL_FORMED_ID.test(sent) ? sent : randomUUID()
}

/**
 * Returns the logger of a request. Each of its lines contains the request id. The logger is created on first use,
 * because most requests log nothing.
 * @param log the log of the server
 */
export function requestLog(ctx: IdentifiedContext, log: Logger): Logger {
  if (!ctx[LOG]) {
    // With tracing, each request has a trace id, even if its client sent none.
    const trace_id = ctx.state.traceId ?? TRACEPARENT.exec(ctx.get('traceparent'))?.[1]
    ctx[LOG] = log.child({ request_id: requestId(ctx), ...(trace_id !== undefined && { trace_id }) })
  }
  return ctx[LOG]
}

/** True if a log line contains the id of this request, so that an operator can find it. */
export function isLogged(ctx: IdentifiedContext): boolean {
  return ctx[LOG] !== undefined
}

/** Sets the route of a request for the log, the metrics and the traces: a path pattern or a group of routes, not a path of the client. */
export function setRoute(ctx: IdentifiedContext, route: string): void {
  ctx[ROUTE] = route
}

/** Returns the route that was set, or undefined if there is none. */
export function routeThatWasSet(ctx: IdentifiedContext): string | undefined {
  return ctx[ROUTE]
}
