/**
 * The cookie that says which browser a login belongs to, one for all its tabs. It also remembers when a login last
 * succeeded, which is how a session cookie that the browser did not keep is noticed.
 */
import type { Context } from 'koa'
import { LOGIN_MAX_AGE_SECONDS } from '../login/transaction.js'
import { readCookie } from '../session/cookie-header.js'
import { type CookieNames, clearCookie, setCookie } from './cookies.js'

export interface LoginCookie {
  /** Random; what the login transactions are bound to. */
  readonly browser: string
  /** Milliseconds since the epoch, when a login has succeeded since the cookie was made. */
  readonly succeededAt: number | undefined
}

const FORM = /^([A-Za-z0-9_-]{43})(?:\.(\d{1,15}))?$/

export function readLoginCookie(ctx: Context, names: CookieNames): LoginCookie | undefined {
  const [, browser, succeededAt] = FORM.exec(readCookie(ctx.get('Cookie'), names.login) ?? '') ?? []
  return browser ? { browser, succeededAt: succeededAt === undefined ? undefined : Number(succeededAt) } : undefined
}

export function writeLoginCookie(ctx: Context, names: CookieNames, { browser, succeededAt }: LoginCookie): void {
  const value = succeededAt === undefined ? browser : `${browser}.${succeededAt}`
  setCookie(ctx, names.login, value, LOGIN_MAX_AGE_SECONDS, names.secure)
}

export function clearLoginCookie(ctx: Context, names: CookieNames): void {
  clearCookie(ctx, names.login, names.secure)
}
