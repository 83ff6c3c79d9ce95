import type { Context } from 'koa'

export interface CookieNames {
  readonly session: string
  readonly login: string
  /** Whether browsers may send them over https only. */
  readonly secure: boolean
}

/**
 * The names follow from the callback URL alone, never from what a request claims: over https the `__Host-` prefix makes
 * browsers refuse a cookie that a neighbouring host or a plain-http page tries to plant (RFC 6265bis section 4.1.3.2).
 */
export function cookieNames(cookieName: string, callbackUrl: string): CookieNames {
  const secure = new URL(callbackUrl).protocol === 'https:'
  const session = secure && !cookieName.startsWith('__Host-') ? `__Host-${cookieName}` : cookieName
  return { session, login: `${session}_login`, secure }
}

/** Appends a Set-Cookie (RFC 6265 section 4.1). Name and value are ours and need no escaping. */
export function setCookie(ctx: Context, name: string, value: string, maxAgeSeconds: number, secure: boolean): void {
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  ctx.append('Set-Cookie', `${name}=${value}; ${attributes}`)
  // Whichever route it is: an answer with somebody's cookie in it belongs in no cache (RFC 9111 section 7.3).
  ctx.set('Cache-Control', 'no-store')
}

export function clearCookie(ctx: Context, name: string, secure: boolean): void {
  setCookie(ctx, name, '', 0, secure)
}

/** Takes what was to be set under these names out of the answer again: the browser keeps what it has. */
export function withholdCookies(ctx: Context, names: readonly string[]): void {
  const lines = [ctx.res.getHeader('Set-Cookie') ?? []].flat().map(String)
  ctx.res.removeHeader('Set-Cookie')
  const others = lines.filter(line => !names.some(name => line.startsWith(`${name}=`)))
  if (others.length > 0) ctx.set('Set-Cookie', others)
}
