/**
 * Protects forward-auth against requests that other sites cause (CSRF). Whole web sites are behind a gateway. So links from
 * other sites must work, and so must the redirect from the identity provider.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** The parts of a request that the check needs. Node joins the values of a repeated header, so they equal no known value. */
export interface ForwardedRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}

export type ForgeryReason = 'other_site' | 'other_origin' | 'not_same_origin'

const READS = ['GET', 'HEAD']
const SAFE = [...READS, 'OPTIONS']

/**
 * Returns the reason why the request that a gateway asks about must be refused, or undefined if there is none.
 * @param ownOrigin the origin of the callback URL
 */
export function forgeryReason(request: ForwardedRequest, ownOrigin: string): ForgeryReason | undefined {
  const { headers } = request
  const methods = methodsOf(request)
  const site = headers['sec-fetch-site']
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  if (isForeign && !(isNavigation(headers) && methods.every(method => READS.includes(method)))) return 'other_site'
  const { origin } = headers
  // In a WebSocket handshake, only this header shows which page began it.
  if (origin !== undefined && originOf(origin) !== ownOrigin) return 'other_origin'
  const isSafe = methods.every(method => SAFE.includes(method))
  return isSafe || site === 'same-origin' || origin !== undefined ? undefined : 'not_same_origin'
}

/** Returns every method that the gateway names. The check must pass for all of them. */
function methodsOf({ method, headers }: ForwardedRequest): readonly string[] {
  const named = [headers['x-forwarded-method'], headers['x-original-method']].filter(name => name !== undefined)
  return named.length > 0 ? named.map(String) : [method]
}

function isNavigation(headers: IncomingHttpHeaders): boolean {
  return headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document'
}

function originOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).origin : undefined
}

/**
 * True if a browser requested the address that the gateway uses for forward-auth. Such a gateway would show the internal
 * token to every page. In nginx, this means that its location lacks `internal;`. The root is exempt, because a gateway that
 * sends all its questions to the root also names the root when somebody opens the start page.
 */
export function isRequestedByBrowser({
  url,
  headersDistinct
}: Pick<IncomingMessage, 'url' | 'headersDistinct'>): boolean {
  if (url === undefined || url === '/') return false
  const forwarded = [...(headersDistinct['x-forwarded-uri'] ?? []), ...(headersDistinct['x-original-uri'] ?? [])]
  return forwarded.includes(url)
}
