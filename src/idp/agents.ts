import http from 'node:http'
import https from 'node:https'

/** Returns the proxy for an address, or undefined for a direct call. */
export type ProxyFor = (address: string) => string | undefined

export interface Agents {
  /** Returns the agents for a call, in the form that got expects. Rejects if the address of the proxy is malformed. */
  for(url: string): Promise<{ readonly http: http.Agent; readonly https: https.Agent }>
  destroy(): void
}

/**
 * Keeps direct connections, and tunnels through each proxy (RFC 9110 section 9.3.6), open for later calls. A proxy sees only the host and the port of an https call.
 * @param idleMs time in milliseconds for which an unused connection is kept
 */
export function createAgents(idleMs: number, proxyFor: ProxyFor): Agents {
  const options = { keepAlive: true, timeout: idleMs }
  const direct = { http: new http.Agent(options), https: new https.Agent(options) }
  const tunnels = new Map<string, Promise<https.Agent>>()

  // The package is loaded by the first call that needs a proxy.
  async function createTunnel(proxy: string): Promise<https.Agent> {
    const { HttpsProxyAgent } = await import('https-proxy-agent')
    const agent = new HttpsProxyAgent(proxy, options)
    // The agent would otherwise return the proxy's refusal as if it were the provider's response.
    agent.on('proxyConnect', ({ statusCode }: { statusCode: number }, request: http.ClientRequest) => {
      if (statusCode !== 200) request.destroy(new ProxyRefusedError(statusCode))
    })
    return agent
  }

  return {
    async for(url) {
      const proxy = proxyFor(url)
      if (proxy === undefined) return direct
      const tunnel = tunnels.get(proxy) ?? createTunnel(proxy)
      tunnels.set(proxy, tunnel)
      return { http: direct.http, https: await tunnel }
    },
    destroy() {
      direct.http.destroy()
      direct.https.destroy()
      for (const tunnel of tunnels.values()) {
        tunnel.then(
          agent => agent.destroy(),
          () => {}
        )
      }
    }
  }
}

/**
 * The proxy did not open a tunnel. Status 407 means that the proxy requires a user name and password in its address.
 */
class ProxyRefusedError extends Error {
  readonly code: string

  constructor(status: number) {
    super(`The proxy answered ${status}.`)
    this.code = `PROXY_ANSWERED_${status}`
  }
}
