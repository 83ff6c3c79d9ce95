import { getProxyForUrl } from 'proxy-from-env'
import { isLoopback } from './urls.js'

// This function is not in urls.ts, because `--help` loads that file and should not load the package proxy-from-env.

/**
 * Returns the proxy for calls of this process to a URL, or undefined for a direct call. The proxy comes from the
 * variables HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in upper or lower case. Calls to this machine never use a
 * proxy.
 */
export function outboundProxy(url: string): string | undefined {
  if (leadsToThisMachine(url)) return undefined
  const proxy = getProxyForUrl(url)
  if (proxy === '') return undefined
  // If a variable contains a proxy without a scheme, proxy-from-env adds the scheme of the called URL. By convention,
  // such a proxy expects plain http, so the scheme is replaced.
  const isAsGiven = Object.values(process.env).includes(proxy)
  return isAsGiven ? proxy : proxy.replace(/^https:/, 'http:')
}

/** True also for the names below localhost (RFC 6761 section 6.3), and for IPv4 addresses of this machine as IPv6 addresses. */
function leadsToThisMachine(url: string): boolean {
  return isLoopback(url) || /(^|\.)localhost\.?$|^\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\]$/.test(new URL(url).hostname)
}
