import { getProxyForUrl } from 'proxy-from-env'
import { isLoopback } from './addresses.js'

/**
 * The proxy through which this process has to call an address, or undefined. HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and
 * NO_PROXY decide, in upper or lower case. An address of this machine never needs a proxy.
 */
export function outboundProxy(address: string): string | undefined {
  if (isLoopback(address)) return undefined
  const proxy = getProxyForUrl(address)
  if (proxy === '') return undefined
  // Without a scheme the package takes that of the address, but such a proxy is meant to be spoken to over plain http.
  const isAsGiven = Object.values(process.env).includes(proxy)
  return isAsGiven ? proxy : proxy.replace(/^https:/, 'http:')
}
