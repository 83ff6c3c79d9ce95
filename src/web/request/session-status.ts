/**
 * The response headers that only this server sets, even if a handler or an API sets them, too. The client module reads the two
 * headers about the session: `Session-Status` says that the request was not executed, so that a page may send it again.
 * `Session-User` is different for each user, so that a page notices when another user has signed in. `X-Request-Id` is the id by
 * which an operator finds the log lines of the request, so every response has it.
 */
import type { OutgoingHttpHeaders } from 'node:http'
import type { Context, Middleware } from 'koa'
import { requestId } from './request.js'

/** `signed-out`: sign in, and then send the request again. `retry`: wait, and then send the request again. */
export type SessionStatus = 'signed-out' | 'retry'

// A response with a different status did not come from the code that set the header.
const HTTP_STATUS = { 'signed-out': 401, retry: 503 } as const satisfies Record<SessionStatus, number>

const NAMES = ['Session-Status', 'Session-User', 'X-Request-Id'] as const

// The values are properties of the context. A WeakMap would keep each context in memory until the next full garbage
// collection.
const STATUS = Symbol('session status')
const USER = Symbol('session user')
type WithStatus = Context & { [STATUS]?: SessionStatus | 'executed'; [USER]?: string }

/** Sets `Session-Status` if the response becomes a 401 or 503. Has no effect after `mayBeExecuted`. */
export function setSessionStatus(ctx: WithStatus, status: SessionStatus): void {
  if (ctx[STATUS] !== 'executed') ctx[STATUS] = status
}

/** Call this before a handler or an API gets the request. From then on, no response says that it was not executed. */
export function mayBeExecuted(ctx: WithStatus): void {
  ctx[STATUS] = 'executed'
}

/** True if a handler or an API has the request, or had it. */
export function wasExecuted(ctx: WithStatus): boolean {
  return ctx[STATUS] === 'executed'
}

/** True if neither a handler nor an API got the request. False if a handler without `requireTokens` may have got it. */
export function wasNotExecuted(ctx: WithStatus): boolean {
  return ctx[STATUS] === 'signed-out' || ctx[STATUS] === 'retry'
}

/** @param user a keyed hash, which does not reveal the user's name */
export function setSessionUser(ctx: WithStatus, user: string): void {
  ctx[USER] = user
}

/** Sets and removes the headers when the head of a response is written, also if a handler writes the head itself. */
export const serverHeaders: Middleware = function serverHeaders(ctx: WithStatus, next) {
  const { res } = ctx
  const write = res.writeHead.bind(res) as (...head: HeadArgument[]) => typeof res
  Object.assign(res, {
    writeHead(status: number, ...head: HeadArgument[]) {
      if (!res.headersSent) {
        for (const name of NAMES) res.removeHeader(name)
        const { [STATUS]: reported, [USER]: user } = ctx
        if (reported && reported !== 'executed' && HTTP_STATUS[reported] === status) {
          res.setHeader('Session-Status', reported)
        }
        if (user !== undefined) res.setHeader('Session-User', user)
        res.setHeader('X-Request-Id', requestId(ctx))
      }
      return write(status, ...head.map(withoutNames))
    }
  })
  return next()
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
  return NAMES.some(ours => ours.toLowerCase() === String(name).toLowerCase())
}
