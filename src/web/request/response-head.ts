/**
 * The head of each response. Only this server sets `X-Request-Id`, by which an operator finds the log lines of a request, and the
 * headers of `session-status.ts`, even if a handler or an API sets them, too.
 */
import { type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Context, Middleware } from 'koa'
import { requestId } from './request.js'
import { SESSION_HEADERS, sessionHeaders } from './session-status.js'

// The values are properties of the context. A WeakMap would keep each context in memory until the next full garbage
// collection.
const DEFAULTS = Symbol('default headers')
const WRITE_HEAD = Symbol('writeHead')
type WriteHead = (status: number, ...head: HeadArgument[]) => ServerResponse
type WithHead = Context & { [DEFAULTS]?: Readonly<Record<string, string>>; [WRITE_HEAD]?: WriteHead }

/** Sets and removes the headers of this server when the head of a response is written, also if a handler writes the head itself. */
export const serverHeaders: Middleware = function serverHeaders(ctx: WithHead, next) {
  const { res } = ctx
  const write = res.writeHead.bind(res) as WriteHead
  // express-session and compression replace `writeHead`. Before version 1.1, their package on-headers misreads a list.
  ctx[WRITE_HEAD] = res.writeHead === ServerResponse.prototype.writeHead ? write : withoutList(res, write)
  Object.assign(res, {
    writeHead(status: number, ...head: HeadArgument[]) {
      if (!res.headersSent) {
        addDefaults(ctx)
        setHeaders(res, headersOf(ctx, status))
      }
      return write(status, ...head.map(withoutNames))
    }
  })
  return next()
}

function withoutList(res: ServerResponse, write: WriteHead): WriteHead {
  return (status, list) => {
    setHeaders(res, list as string[])
    return write(status)
  }
}

/**
 * Writes the head of a response. Node sends it together with the content, which the caller writes. Node needs much less time for a
 * list of headers than for setting each header, so the most frequent responses use this function.
 * @param headers They replace the headers that were set before.
 * @throws and sets none of them if Node rejects a header
 */
export function sendHead(ctx: WithHead, status: number, headers: Iterable<readonly [string, string | string[]]>): void {
  const list: (string | string[])[] = headersOf(ctx, status)
  // `flat` would take longer than the rest of this function.
  for (const [name, value] of headers) list.push(name, value)
  try {
    ctx[WRITE_HEAD]?.(status, list)
    ctx.respond = false
  } catch (error) {
    for (const [name] of headers) ctx.res.removeHeader(name)
    throw error
  }
}

/** Responds with status 200. If this server is mounted in another application, Koa sends the response. */
export function sendContent(ctx: Context, headers: readonly (readonly [string, string])[], content: string): void {
  if (isMounted(ctx)) {
    ctx.set(Object.fromEntries(headers))
    ctx.body = content
  } else {
    sendHead(ctx, 200, [...headers, ['Content-Length', String(Buffer.byteLength(content))]])
    ctx.res.end(content)
  }
}

/** Sets the headers of a response for which the handler does not call `sendHead`. The handler may set them to other values. */
export function setDefaultHeaders(ctx: WithHead, headers: Readonly<Record<string, string>>): void {
  // Replace headers of outer middleware now, so that the handler can replace these.
  if (isMounted(ctx) || ctx.res.getHeaderNames().length > 0) ctx.set(headers)
  else ctx[DEFAULTS] = headers
}

// The middleware of the other application may change headers and content after this server.
const isMounted = ({ app }: Context): boolean => !app.middleware.includes(serverHeaders)

function addDefaults(ctx: WithHead): void {
  for (const [name, value] of Object.entries(ctx[DEFAULTS] ?? {})) {
    const given = ctx.res.getHeader(name)
    if (given === undefined || name === 'Vary') ctx.res.setHeader(name, value)
    if (given !== undefined && name === 'Vary') ctx.vary(String(given))
  }
}

function setHeaders(res: ServerResponse, list: readonly (string | string[])[]): void {
  for (let index = 0; index < list.length; index += 2) {
    res.setHeader(list[index] as string, list[index + 1] as string | string[])
  }
}

/** Returns the headers that only this server sets, and removes the others of them. */
function headersOf(ctx: Context, status: number): string[] {
  for (const name of SESSION_HEADERS) ctx.res.removeHeader(name)
  return ['X-Request-Id', requestId(ctx), ...sessionHeaders(ctx, status)]
}

// The arguments of `writeHead`: the status, its text, and the headers as an object, as pairs, or as a list in which each name is
// followed by its value.
type HeadArgument = number | string | undefined | OutgoingHttpHeaders | unknown[]

function withoutNames(head: HeadArgument): HeadArgument {
  if (typeof head !== 'object' || head === null) return head
  if (!Array.isArray(head)) return Object.fromEntries(Object.entries(head).filter(([name]) => !isOurs(name)))
  return head.filter((item, index) => !isOurs(Array.isArray(item) ? item[0] : head[index - (index % 2)]))
}

function isOurs(name: unknown): boolean {
  return ['X-Request-Id', ...SESSION_HEADERS].some(ours => ours.toLowerCase() === String(name).toLowerCase())
}
