import { type Endpoint, isErrorCode, ProviderError } from '../../provider/errors.js'
import type { Transport } from '../../provider/transport.js'

export interface Destination {
  /** The status of the first response. */
  readonly firstStatus: number
  /** The status of the last response. It can be a redirect, because a redirect to another origin is not followed. */
  readonly status: number
  /** The value of the query parameter `error` of a redirect, if a redirect had this parameter. */
  readonly error: string | undefined
  /** The address that contains the error code. Without an error, the last address that was opened. */
  readonly url: string
}

const MOST_REDIRECTS = 10

/**
 * Opens a page of the provider like a browser that has no cookies yet. Follows redirects within one origin until a redirect
 * has an error code. A redirect to another origin is not followed.
 * @throws ProviderError if the provider cannot be reached or redirects too often
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
    if (redirects === MOST_REDIRECTS) throw new ProviderError(endpoint, 'unusable', 'it redirects in circles')
    url = target.href
  }
}

// All requests go to one origin and end within seconds, so the attributes of a cookie can be ignored.
function keepCookie(cookies: Map<string, string>, setCookie: string): void {
  const [, name, value] = /^\s*([^=;]+)=([^;]*)/.exec(setCookie) ?? []
  if (name !== undefined && value !== undefined) cookies.set(name.trim(), value)
}
