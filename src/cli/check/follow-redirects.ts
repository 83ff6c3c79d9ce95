import { type Endpoint, isErrorCode, UpstreamError } from '../../idp/errors.js'
import type { Transport } from '../../idp/transport.js'

export interface Destination {
  /** Of the first answer. */
  readonly firstStatus: number
  /** Of the last answer that was fetched; a redirect when it leads to another origin. */
  readonly status: number
  /** The code in `error=`, if a redirect on the way carried one. */
  readonly error: string | undefined
  /** The address that carried the error, or the last one of the provider. */
  readonly url: string
}

const MOST_REDIRECTS = 10

/**
 * Opens a page of the provider as a browser would that has never been there. Redirects are followed while they stay on the same
 * origin and name no error; the address of another origin is read, but not opened. Throws UpstreamError.
 */
export async function followRedirects(
  transport: Transport,
  start: { readonly endpoint: Endpoint; readonly url: string }
): Promise<Destination> {
  const { endpoint } = start
  const { origin } = new URL(start.url)
  const cookies = new Map<string, string>()
  let { url } = start
  let firstStatus: number | undefined
  for (let redirects = 0; ; redirects++) {
    const cookie = [...cookies].map(pair => pair.join('=')).join('; ')
    const headers = { accept: 'text/html', ...(cookie !== '' && { cookie }) }
    const { status, location, setCookies } = await transport.call({ endpoint, url, headers })
    firstStatus ??= status
    for (const line of setCookies) keepCookie(cookies, line)
    const isRedirect = status >= 300 && status < 400 && location !== undefined && URL.canParse(location, url)
    if (!isRedirect) return { firstStatus, status, error: undefined, url }
    const target = new URL(location, url)
    const error = target.searchParams.get('error')
    if (error !== null) {
      return {
        firstStatus,
        status,
        error: isErrorCode(error) ? error : 'an error without a proper code',
        url: target.href
      }
    }
    if (target.origin !== origin) return { firstStatus, status, error: undefined, url }
    if (redirects === MOST_REDIRECTS) throw new UpstreamError(endpoint, 'unusable', 'it redirects in circles')
    url = target.href
  }
}

// All requests go to one origin and end within seconds, so neither the attributes of a cookie nor its expiry matter.
function keepCookie(cookies: Map<string, string>, setCookie: string): void {
  const [, name, value] = /^\s*([^=;]+)=([^;]*)/.exec(setCookie) ?? []
  if (name !== undefined && value !== undefined) cookies.set(name.trim(), value)
}
