/**
 * Protects the sites behind forward-auth against cross-site request forgery. These are whole web sites, so links from
 * other sites and the redirect from the identity provider must still work.
 */
import type { IncomingHttpHeaders } from 'node:http'

/**
 * The parts of a request that the check uses. If a header is repeated, Node joins its values, and the joined text
 * equals none of the accepted values.
 */
export interface ForwardedRequest {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}

export type ForgeryReason = 'other_site' | 'other_origin' | 'not_same_origin'

const READS = ['GET', 'HEAD']
const SAFE = [...READS, 'OPTIONS']

/**
 * Returns the reason why the browser's request must be refused, or undefined if the gateway may forward it.
 * @param request the gateway's request to this server, which contains the headers of the browser's request
 * @param ownOrigin the origin of the callback URL
 */
export function forgeryReason(request: ForwardedRequest, ownOrigin: string): ForgeryReason | undefined {
  const { headers } = request
  const methods = methodsOf(request)
  const site = headers['sec-fetch-site']
  const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
  if (isForeign && !(isNavigation(headers) && methods.every(method => READS.includes(method)))) return 'other_site'
  const { origin } = headers
  // In a WebSocket handshake, `Origin` shows which page opens the connection (RFC 6455 section 10.2).
  if (origin !== undefined && originOf(origin) !== ownOrigin) return 'other_origin'
  const isSafe = methods.every(method => SAFE.includes(method))
  return isSafe || site === 'same-origin' || origin !== undefined ? undefined : 'not_same_origin'
}

/**
 * Returns the methods that the gateway sends in headers, or else the method of its own request. The check must pass for
 * each of these methods.
 */
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
