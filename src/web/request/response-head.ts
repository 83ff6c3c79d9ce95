/**
 * The head of each response. Only this server sets `X-Request-Id`, by which an operator finds the log lines of a request, and the
 * headers of `session-status.ts`, even if a handler or an API sets them, too.
 */
import type { OutgoingHttpHeaders } from 'node:http'
import type { Context, Middleware } from 'koa'
import { requestId } from './request.js'
import { SESSION_HEADERS, sessionHeaders } from './session-status.js'

// The values are properties of the context. A WeakMap would keep each context in memory until the next full garbage
// collection.
const DEFAULTS = Symbol('default headers')
const WRITE_HEAD = Symbol('writeHead')
interface WithHead extends Context {
  [DEFAULTS]?: Readonly<Record<string, string>>
  [WRITE_HEAD]?: (status: number, ...head: HeadArgument[]) => unknown
}

/** Sets and removes the headers of this server when the head of a response is written, also if a handler writes the head itself. */
export const serverHeaders: Middleware = function serverHeaders(ctx: WithHead, next) {
  const { res } = ctx
  const write = res.writeHead.bind(res) as (status: number, ...head: HeadArgument[]) => typeof res
  ctx[WRITE_HEAD] = write
  Object.assign(res, {
    writeHead(status: number, ...head: HeadArgument[]) {
      if (!res.headersSent) {
        addDefaults(ctx)
        const headers = headersOf(ctx, status)
        for (let index = 0; index < headers.length; index += 2) {
          res.setHeader(headers[index] as string, headers[index + 1] as string)
        }
      }
      return write(status, ...head.map(withoutNames))
    }
  })
  return next()
}

/**
 * Creates the head of a response. Node sends it with the content, which the caller writes. A list takes Node much less time than
 * setting each header, so the most frequent responses use this function.
 * @param headers each name is followed by its value; they replace the headers that were set before
 * @throws and sets none of them if Node rejects a header
 */
export function sendHead(ctx: WithHead, status: number, headers: readonly (string | string[])[]): void {
  try {
    ctx[WRITE_HEAD]?.(status, [...headers, ...headersOf(ctx, status)])
    ctx.respond = false
  } catch (error) {
    for (let index = 0; index < headers.length; index += 2) ctx.res.removeHeader(headers[index] as string)
    throw error
  }
}

/** Sets the headers of a response for which the handler does not call `sendHead`. The handler may set them to other values. */
export function setDefaultHeaders(ctx: WithHead, headers: Readonly<Record<string, string>>): void {
  ctx[DEFAULTS] = headers
}

function addDefaults(ctx: WithHead): void {
  for (const [name, value] of Object.entries(ctx[DEFAULTS] ?? {})) {
    if (name === 'Vary') ctx.vary(value)
    else if (!ctx.res.hasHeader(name)) ctx.res.setHeader(name, value)
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
