/**
 * The defence of forward-auth against requests that other sites cause. Whole web sites stand behind a gateway, so links from
 * other sites must work, and so must the way back from the identity provider.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/** The parts of a request that are looked at. Node joins the values of a repeated header, which then match nothing. */
export interface ForwardedRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}

export type ForgeryReason = 'other_site' | 'other_origin' | 'not_same_origin'

const READS = ['GET', 'HEAD']
const SAFE = [...READS, 'OPTIONS']

/**
 * Returns the reason to refuse the request that a gateway asks about, or undefined.
 * @param ownOrigin the origin of the callback URL
 */
export function forgeryReason(request: ForwardedRequest, ownOrigin: string): ForgeryReason | undefined {
  const { headers } = request
  const methods = methodsOf(request)
  const site = headers['sec-fetch-site']
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  if (isForeign && !(isNavigation(headers) && methods.every(method => READS.includes(method)))) return 'other_site'
  const { origin } = headers
  // A WebSocket handshake carries no other sign of the page that began it.
  if (origin !== undefined && originOf(origin) !== ownOrigin) return 'other_origin'
  const isSafe = methods.every(method => SAFE.includes(method))
  return isSafe || site === 'same-origin' || origin !== undefined ? undefined : 'not_same_origin'
}

/** All that the gateway names. The strictest of them counts. */
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
 * True if the browser itself asked for the address that the gateway keeps for forward-auth. Such a gateway would show the
 * internal token to every page: in nginx, its location lacks `internal;`. The root is exempt, because a gateway that sends
 * all its questions to the root names the root when somebody opens the start page.
 */
export function isAskedByBrowser({ url, headersDistinct }: Pick<IncomingMessage, 'url' | 'headersDistinct'>): boolean {
  if (url === undefined || url === '/') return false
  const forwarded = [...(headersDistinct['x-forwarded-uri'] ?? []), ...(headersDistinct['x-original-uri'] ?? [])]
  return forwarded.includes(url)
}
