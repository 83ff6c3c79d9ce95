import type { Context } from 'koa'

export interface CookieNames {
  readonly session: string
  readonly login: string
  /** True if browsers may send the cookies over https only. */
  readonly secure: boolean
}

/**
 * Returns the cookie names. They depend on the callback URL and not on the request, because a client can forge the
 * headers of its request. With https, the prefix `__Host-` makes browsers reject a cookie that a neighbouring host or a
 * plain-http page tries to set (RFC 6265bis section 4.1.3.2).
 */
export function cookieNames(cookieName: string, callbackUrl: string): CookieNames {
  const secure = new URL(callbackUrl).protocol === 'https:'
  const session = secure && !cookieName.startsWith('__Host-') ? `__Host-${cookieName}` : cookieName
  return { session, login: `${session}_login`, secure }
}

/** Appends a Set-Cookie header (RFC 6265 section 4.1). The names and values that this server uses need no escaping. */
export function setCookie(ctx: Context, name: string, value: string, maxAgeSeconds: number, secure: boolean): void {
  const attributes = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`
  ctx.append('Set-Cookie', `${name}=${value}; ${attributes}`)
  // A response that sets a cookie is meant for one person and must not be cached (RFC 9111 section 7.3).
  ctx.set('Cache-Control', 'no-store')
}

export function clearCookie(ctx: Context, name: string, secure: boolean): void {
  setCookie(ctx, name, '', 0, secure)
}

/**
 * Removes the Set-Cookie headers for these names from the response, so that the cookies in the browser do not change.
 */
export function withholdCookies(ctx: Context, names: readonly string[]): void {
  const lines = [ctx.res.getHeader('Set-Cookie') ?? []].flat().map(String)
  ctx.res.removeHeader('Set-Cookie')
  const others = lines.filter(line => !names.some(name => line.startsWith(`${name}=`)))
  if (others.length > 0) ctx.set('Set-Cookie', others)
}
