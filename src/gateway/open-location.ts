/** Detects a gateway that lets browsers request the address that it uses for forward-auth. */
import type { IncomingMessage } from 'node:http'
import { decodings, mergePath, readAsText } from '../support/path-readings.js'

/**
 * True if a browser requested the address that the gateway itself uses for forward-auth. If browsers can open this
 * address, every page can read the internal token. In nginx, the location for this address then lacks `internal;`.
 *
 * A gateway may decode the path of a request and merge its slashes before it selects the location. Therefore the paths
 * are compared in every reading. The address `/` is not checked. If a gateway uses it for forward-auth, a request for the
 * start page has the same address.
 */
export function isRequestedByBrowser({
  url = '/',
  headersDistinct
}: Pick<IncomingMessage, 'url' | 'headersDistinct'>): boolean {
  const own = new Set(readingsOf(url))
  own.delete('/')
  if (own.size === 0) return false
  const forwarded = [...(headersDistinct['x-forwarded-uri'] ?? []), ...(headersDistinct['x-original-uri'] ?? [])]
  return forwarded.some(target => readingsOf(target).some(path => own.has(path)))
}

/** Returns the paths that a gateway may read from a request target, without the host and the query. */
function readingsOf(target: string): readonly string[] {
  const path = target.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*/s, '')
  return decodings(path).map(bytes => mergePath(readAsText(bytes)))
}
