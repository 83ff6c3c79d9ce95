/**
 * The login cookie identifies the browser that started a login. All tabs of the browser share this cookie. It also
 * records the time of the last successful login. If the session cookie is missing soon after that time, the browser did
 * not keep it.
 */
import type { Context } from 'koa'
import { LOGIN_MAX_AGE_SECONDS } from '../../login/transaction.js'
import { readCookie } from '../../session/request-cookies.js'
import { type CookieNames, clearCookie, setCookie } from './cookies.js'

export interface LoginCookie {
  /** The random value that identifies this browser. Login transactions are bound to it. */
  readonly browserId: string
  /**
   * Time of the last successful login in milliseconds since the epoch. It is undefined if there was none, if the
   * browser has started another login since, or if the server has ended the session.
   */
  readonly succeededAt: number | undefined
}

const LOGIN_COOKIE = /^([A-Za-z0-9_-]{43})(?:\.(\d{1,15}))?$/

export function readLoginCookie(ctx: Context, names: CookieNames): LoginCookie | undefined {
  const [, browserId, succeededAt] = LOGIN_COOKIE.exec(readCookie(ctx.get('Cookie'), names.login) ?? '') ?? []
  return browserId ? { browserId, succeededAt: succeededAt === undefined ? undefined : Number(succeededAt) } : undefined
}

export function writeLoginCookie(ctx: Context, names: CookieNames, { browserId, succeededAt }: LoginCookie): void {
  const value = succeededAt === undefined ? browserId : `${browserId}.${succeededAt}`
  setCookie(ctx, names.login, value, LOGIN_MAX_AGE_SECONDS, names.secure)
}

export function clearLoginCookie(ctx: Context, names: CookieNames): void {
  clearCookie(ctx, names.login, names.secure)
}
