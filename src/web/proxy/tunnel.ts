/**
 * Opens connections to upstreams through the HTTP proxy of a company (RFC 9110 section 9.3.6). undici's own agent for
 * proxies decides differently from the client of the identity provider, and would send requests to `http://backend`
 * through the proxy. A connector leaves the pools, the retry and the metrics as they are.
 */
import type { buildConnector } from 'undici'
import type { ProxyFor } from '../../provider/agents.js'
import { openTunnel } from '../../provider/tunnel.js'

/**
 * Returns a connector that opens a tunnel for each https origin for which `proxyFor` returns a proxy. For all other
 * origins, it uses `connect` directly.
 * @param connect starts TLS, and gets the connection to the proxy as `httpSocket`
 * @param timeoutMs the time limit for opening a tunnel, in milliseconds
 */
export function tunnelling(
  connect: buildConnector.connector,
  proxyFor: ProxyFor,
  timeoutMs: number
): buildConnector.connector {
  return function connectThroughProxy(options, callback) {
    const { protocol, host = options.hostname } = options
    const proxy = protocol === 'https:' ? proxyFor(`https://${host}`) : undefined
    if (proxy === undefined) return connect(options, callback)
    openTunnel(proxy, `https://${host}`, timeoutMs).then(
      httpSocket => connect({ ...options, httpSocket }, callback),
      (error: Error) => callback(error, null)
    )
    return undefined
  }
}
