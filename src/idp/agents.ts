import http from 'node:http'
import https from 'node:https'

/** The proxy for an address, or undefined where the call goes straight to it. */
export type ProxyFor = (address: string) => string | undefined

export interface Agents {
  /** The agents of a call, in the form that got takes. Rejects when the address of the proxy is malformed. */
  for(url: string): Promise<{ readonly http: http.Agent; readonly https: https.Agent }>
  destroy(): void
}

/**
 * Keeps connections for further calls: straight ones, and tunnels through each proxy that is in use (RFC 9110 section
 * 9.3.6). A proxy sees the host and the port of an https call and none of its content.
 * @param idleMs how long an unused connection is kept
 */
export function createAgents(idleMs: number, proxyFor: ProxyFor): Agents {
  const options = { keepAlive: true, timeout: idleMs }
  const direct = { http: new http.Agent(options), https: new https.Agent(options) }
  const tunnels = new Map<string, Promise<https.Agent>>()

  // Loaded by the first call that needs a proxy.
  async function createTunnel(proxy: string): Promise<https.Agent> {
    const { HttpsProxyAgent } = await import('https-proxy-agent')
    const agent = new HttpsProxyAgent(proxy, options)
    // The agent would pass the proxy's refusal on as if the provider had answered.
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

/** The proxy did not open a tunnel. 407 means that it wants a login, which its address can hold. */
class ProxyRefusedError extends Error {
  readonly code: string

  constructor(status: number) {
    super(`The proxy answered ${status}.`)
    this.code = `PROXY_ANSWERED_${status}`
  }
}
