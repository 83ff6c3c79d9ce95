/**
 * Corrects or rejects unusual requests, so that later middleware need not handle them. The other files of this folder:
 *
 * - `connections`, `arrivals`, `client-errors`: the connections, the order and time of requests, and requests that Node rejects
 * - `request-origin`: whether a request may use the session of its browser
 * - `observe`, `health-routes`: the records of requests, and the paths for load balancers
 * - `loaded-in-background`: middleware whose packages would delay the start
 */
import type { IncomingMessage } from 'node:http'
import type { Middleware } from 'koa'
import { closingError } from '../errors/http-error.js'
import { hasBody } from './arrivals.js'

// Koa parses these headers with the package negotiator, which takes quadratic time, so the length of the
// headers is limited. Browsers send about a hundred characters.
const MAX_PREFERENCE_LENGTH = 1024
const PREFERENCES = ['accept', 'accept-encoding', 'accept-language', 'accept-charset']

// Matches a path whose first segment is not empty. If a path begins with two slashes, or with a slash and a backslash,
// `url.parse()` would interpret the next characters as a host.
const PLAIN_PATH = /^\/(?![/\\])/

// Matches the scheme and the authority of a request target in absolute form (RFC 9112 section 3.2.2).
const AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i

/**
 * Reduces the request target to its path and query. A client may send an absolute URL, but this server does not need
 * the host in it. For an absolute URL, Koa would call `url.parse()` on every access to `ctx.path`, and `url.parse()`
 * throws for a malformed host.
 *
 * Removes `Accept` and the related headers if they have more than 1,024 characters. A server may disregard these
 * headers (RFC 9110 section 12.5).
 */
export const normalizeRequest: Middleware = function normalizeRequest(ctx, next) {
  if (!PLAIN_PATH.test(ctx.url)) ctx.url = pathAndQuery(ctx.url)
  const { headers } = ctx.req
  for (const name of PREFERENCES) {
    if ((headers[name]?.length ?? 0) > MAX_PREFERENCE_LENGTH) delete headers[name]
  }
  return next()
}

function pathAndQuery(target: string): string {
  if (target === '*') return target
  const rest = target.replace(AUTHORITY, '')
  const path = rest.startsWith('/') ? rest : `/${rest}`
  return path.replace(/^\/[/\\]/, '/%2F')
}

/**
 * Rejects an invalid request. Throws HttpError 400 if there are several Host headers, or none in HTTP/1.1. Throws 417
 * for an expectation other than `100-continue`, and 413 for a GET or HEAD with a body. Each of these responses closes
 * the connection.
 */
export const rejectInvalidRequests: Middleware = function rejectInvalidRequests({ req }, next) {
  const { method, headers, httpVersion } = req
  const isHttp11 = httpVersion === '1.1'
  const hosts = countHosts(req)
  if (hosts > 1 || (hosts === 0 && isHttp11)) throw closingError(400, 'A request must have exactly one Host header.')
  // RFC 9110 section 10.1.1. Node itself responds to `100-continue` before it calls this function.
  if (isHttp11 && headers.expect !== undefined && !/\b100-continue\b/i.test(headers.expect)) {
    throw closingError(417, 'This server supports no expectation except 100-continue.')
  }
  // No route reads the body of a GET or HEAD, so the server does not wait for such a body.
  if ((method === 'GET' || method === 'HEAD') && hasBody(req)) {
    throw closingError(413, 'Requests to this server must not have a body.')
  }
  return next()
}

// RFC 9112 section 3.2. Node uses the first of several Host headers, but a proxy in front of this server may have used
// another header, so a request with several Host headers is rejected.
function countHosts({ rawHeaders }: IncomingMessage): number {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts
}
