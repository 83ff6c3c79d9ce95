/**
 * What is known about one request: its ids, its log, and the notes of the middleware. The other files of this folder:
 *
 * - `session`, `session-status`, `session-refusal`: its session, the headers about it, and the response if it has none
 * - `response-head`: the headers that only this server sets, and the fastest way to send the others
 * - `navigation`, `returning`: what the browser does with the response, and where it goes after a login
 */
import { randomUUID } from 'node:crypto'
import type { Context } from 'koa'
import type { Logger } from 'pino'

// Proxies send letters, digits and a few punctuation marks. Other characters could break a log line or a header, so an
// id that contains them is replaced.
const WELL_FORMED_ID = /^[\w.:+/=-]{1,128}$/

// W3C Trace Context section 3.2: version, trace id, parent id, flags. An id that contains only zeros, and the version
// ff, are invalid.
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-|$)/

/** What the log, the metrics, the traces and the error pages say about a request. */
interface Notes {
  id?: string
  log?: Logger
  /** A path pattern or a group of routes, not a path of the client. */
  route?: string
  /** The trace id of the span of this request. */
  traceId?: string
  /** The time until the upstream had sent its response headers, for a proxied request. */
  upstreamHeaderMs?: number
  /** The error that became the response. */
  error?: { readonly error: string; readonly reason?: string | undefined }
  /** The login to which this request belongs. The login and callback routes note it as soon as they know it. */
  login?: { readonly returnTo: string; readonly prompt?: string | undefined }
}

// The notes are a property of the context. A WeakMap would keep each context in memory until the next full garbage
// collection, and `ctx.state` belongs to the custom routes, too.
const NOTES = Symbol('notes')
type NotedContext = Context & { [NOTES]?: Notes }

export function notesOf(ctx: NotedContext): Notes {
  ctx[NOTES] ??= {}
  return ctx[NOTES]
}

/** Returns the value of `X-Request-Id` if it is well-formed, otherwise a new random id. */
export function requestId(ctx: Context): string {
  const notes = notesOf(ctx)
  notes.id ??= requestIdOf(ctx.get('X-Request-Id'))
  return notes.id
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
export function requestLog(ctx: Context, log: Logger): Logger {
  const notes = notesOf(ctx)
  if (!notes.log) {
    // With tracing, each request has a trace id, even if its client sent none.
    const trace_id = notes.traceId ?? TRACEPARENT.exec(ctx.get('traceparent'))?.[1]
    notes.log = log.child({ request_id: requestId(ctx), ...(trace_id !== undefined && { trace_id }) })
  }
  return notes.log
}

/** True if a log line contains the id of this request, so that an operator can find it. */
export function isLogged(ctx: Context): boolean {
  return notesOf(ctx).log !== undefined
}
