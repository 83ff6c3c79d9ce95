import { type Endpoint, isErrorCode, UpstreamError } from '../../idp/errors.js'
import type { Transport } from '../../idp/transport.js'

export interface Destination {
  /** The status of the first response. */
  readonly firstStatus: number
  /** The status of the last response. It is a redirect if that response leads to another origin. */
  readonly status: number
  /** The error code, if a redirect had the query parameter `error`. */
  readonly error: string | undefined
  /** The address with the error code, or the last address of the provider. */
  readonly url: string
}

const MOST_REDIRECTS = 10

/**
 * Opens a page of the provider like a browser without cookies. Follows redirects within one origin until one of them has
 * an error code. A redirect to another origin is not followed.
 * @throws UpstreamError if the provider cannot be reached or redirects too often
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
