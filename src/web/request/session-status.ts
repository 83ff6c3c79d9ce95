/**
 * The two response headers that the client module reads. `Session-Status` says that the request was not executed, so that a page may
 * send it again. `Session-User` is different for each user, so that a page notices when another user has signed in.
 */
import type { Context } from 'koa'

/** `signed-out`: sign in, and then send the request again. `retry`: wait, and then send the request again. */
export type SessionStatus = 'signed-out' | 'retry'

// A response with a different status did not come from the code that set the header.
const HTTP_STATUS = { 'signed-out': 401, retry: 503 } as const satisfies Record<SessionStatus, number>

export const SESSION_HEADERS: readonly string[] = ['Session-Status', 'Session-User']

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

/** Returns the headers of a response with this status: each name is followed by its value. */
export function sessionHeaders({ [STATUS]: reported, [USER]: user }: WithStatus, status: number): string[] {
  const isReported = reported && reported !== 'executed' && HTTP_STATUS[reported] === status
  return [...(isReported ? ['Session-Status', reported] : []), ...(user === undefined ? [] : ['Session-User', user])]
}
