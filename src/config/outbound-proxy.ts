import { getProxyForUrl } from 'proxy-from-env'
import { isLoopback } from './addresses.js'

/**
 * Returns the proxy for calls of this process to an address, or undefined for a direct call. The variables HTTPS_PROXY,
 * HTTP_PROXY, ALL_PROXY and NO_PROXY decide, in upper or lower case. Calls to this machine never use a proxy.
 */
export function outboundProxy(address: string): string | undefined {
  if (isLoopback(address)) return undefined
  const proxy = getProxyForUrl(address)
  if (proxy === '') return undefined
  // If a variable contains a proxy without a scheme, proxy-from-env adds the scheme of the address. By convention, such a
  // proxy expects plain http.
  const isAsGiven = Object.values(process.env).includes(proxy)
  return isAsGiven ? proxy : proxy.replace(/^https:/, 'http:')
}
