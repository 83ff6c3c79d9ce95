import http from 'node:http'
import https from 'node:https'
import { connectOptions } from '../base/connect-options.js'

/** Returns the URL of the proxy for a call, or undefined if the call must not use a proxy. */
export type ProxyFor = (url: string) => string | undefined

export type Agents = ReturnType<typeof createAgents>

/**
 * Creates the agents, which keep connections open for later calls. An https call through a proxy uses a tunnel (RFC
 * 9110 section 9.3.6), so the proxy sees only the host and the port.
 * @param idleMs the time in milliseconds after which an unused connection is closed
 * @param connectMs the time limit in milliseconds for a call, and so for connecting
 */
export function createAgents(idleMs: number, connectMs: number, proxyFor: ProxyFor) {
  const forOneCall = connectOptions(connectMs)
  const options = { keepAlive: true, timeout: idleMs, ...forOneCall }
  const direct = { http: new http.Agent(options), https: new https.Agent(options) }
  const tunnels = new Map<string, Promise<https.Agent>>()
  // The keys are the endpoints of the provider, so the map stays small. Finding the proxy again for each call would take longer
  // than the rest of this file.
  const proxies = new Map<string, string | undefined>()

  function knownProxyFor(url: string): string | undefined {
    if (!proxies.has(url)) proxies.set(url, proxyFor(url))
    return proxies.get(url)
  }

  // The package is imported here, so that a server without a proxy does not load it.
  async function createTunnel(proxy: string, options: http.AgentOptions): Promise<https.Agent> {
    parseProxy(proxy)
    const { HttpsProxyAgent } = await import('https-proxy-agent')
    const agent = new HttpsProxyAgent(proxy, options)
    // If the proxy rejects the tunnel, the agent would return the response of the proxy as the response of the
    // provider, so the request is destroyed.
    agent.on('proxyConnect', ({ statusCode }: { statusCode: number }, request: http.ClientRequest) => {
      if (statusCode !== 200) request.destroy(proxyRejection(statusCode))
    })
    return agent
  }

  return {
    /**
     * Returns the agents for a call, in the format of got's option `agent`. Rejects if the proxy cannot be
     * used.
     * @param onNewConnection true if the call must not use a connection that is already open
     */
    async for(url: string, onNewConnection = false) {
      const proxy = knownProxyFor(url)
      if (onNewConnection) {
        return {
          http: new http.Agent(forOneCall),
          https: proxy === undefined ? new https.Agent(forOneCall) : await createTunnel(proxy, forOneCall)
        }
      }
      if (proxy === undefined) return direct
      const tunnel = tunnels.get(proxy) ?? createTunnel(proxy, options)
      tunnels.set(proxy, tunnel)
      return { http: direct.http, https: await tunnel }
    },
    /** Closes all connections. */
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
 * Parses the URL of a proxy, with a user name and a password if it needs them.
 * @throws an Error with a code, without the URL, which may contain a password, if the server cannot use this proxy
 */
export function parseProxy(proxy: string) {
  if (!URL.canParse(proxy)) throw unusableProxy('PROXY_URL_MALFORMED', 'has a malformed URL')
  const { protocol, hostname, port, username, password } = new URL(proxy)
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw unusableProxy(
      'PROXY_NOT_HTTP',
      `uses ${protocol.slice(0, -1)}, but only http and https proxies are supported`
    )
  }
  const isTls = protocol === 'https:'
  // In a URL, an IPv6 address has brackets.
  const host = hostname.replace(/^\[|\]$/g, '')
  return { isTls, host, port: Number(port || (isTls ? 443 : 80)), credentials: credentialsOf(username, password) }
}

function credentialsOf(username: string, password: string): string | undefined {
  if (username === '' && password === '') return undefined
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  } catch {
    throw unusableProxy('PROXY_USER_MALFORMED', 'has a user name or a password whose percent-encoding is malformed')
  }
}

function unusableProxy(code: string, why: string): Error {
  return Object.assign(new Error(`The proxy ${why}.`), { code })
}

/**
 * The proxy rejected the request for a tunnel. Status 407 means that the URL of the proxy must contain a user name and a
 * password.
 */
export function proxyRejection(status: number): Error {
  return Object.assign(new Error(`The proxy responded with ${status}.`), { code: `PROXY_RESPONDED_${status}` })
}
