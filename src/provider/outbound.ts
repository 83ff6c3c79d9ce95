/**
 * Connections to other servers, directly or through the HTTP proxy of a company. An https connection through a proxy uses a tunnel
 * (RFC 9110 section 9.3.6), so the proxy sees only the host and the port.
 */
import http from 'node:http'
import https from 'node:https'
import { isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connectOptions } from '../base/connect-options.js'
import { parseProxy } from '../config/outbound-proxy.js'

/** Returns the URL of the proxy for a call, or undefined if the call must not use a proxy. */
export type ProxyFor = (url: string) => string | undefined

export type Agents = ReturnType<typeof createAgents>

/**
 * Creates the agents, which keep connections open for later calls.
 * @param idleMs the time in milliseconds after which an unused connection or tunnel is closed
 * @param connectMs the time limit in milliseconds for a call, and so for connecting
 */
export function createAgents(idleMs: number, connectMs: number, proxyFor: ProxyFor) {
  const forOneCall = connectOptions(connectMs)
  const pair = (options: https.AgentOptions) => ({
    http: new http.Agent(options),
    https: new TunnelAgent(options, connectMs, proxyFor)
  })
  const kept = pair({ keepAlive: true, timeout: idleMs, ...forOneCall })

  return {
    /**
     * Returns the agents for a call, in the format of got's option `agent`.
     * @param onNewConnection true if the call must not use a connection that is already open
     */
    for: (onNewConnection = false) => (onNewConnection ? pair(forOneCall) : kept),
    /** Closes all connections. */
    destroy() {
      kept.http.destroy()
      kept.https.destroy()
    }
  }
}

/** Node's agent closes idle tunnels like direct connections, because it gets only the TLS socket inside of the tunnel. */
class TunnelAgent extends https.Agent {
  readonly #timeoutMs: number
  readonly #proxyFor: ProxyFor

  constructor(options: https.AgentOptions, timeoutMs: number, proxyFor: ProxyFor) {
    super(options)
    this.#timeoutMs = timeoutMs
    this.#proxyFor = proxyFor
  }

  override createConnection(
    options: https.RequestOptions,
    callback?: (error: Error | null, stream: Duplex) => void
  ): Duplex | null | undefined {
    const { port } = options
    const host = options.host ?? 'localhost'
    const origin = `https://${isIP(host) === 6 ? `[${host}]` : host}:${port}`
    const proxy = this.#proxyFor(origin)
    if (proxy === undefined) return super.createConnection(options, callback)
    openTunnel(proxy, origin, this.#timeoutMs).then(
      socket => callback?.(null, super.createConnection({ ...options, socket } as https.RequestOptions) as Duplex),
      // The type of Node requires a connection also for an error.
      error => callback?.(error, undefined as unknown as Duplex)
    )
    return undefined
  }
}

/**
 * Opens a tunnel through an HTTP proxy.
 * @param proxy the URL of the proxy, with a user name and a password if it needs them
 * @param origin the https origin to which the tunnel leads
 * @throws an Error with a code if the proxy cannot be used, or opens no tunnel
 */
export function openTunnel(proxy: string, origin: string, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { isTls, host, port, credentials } = parseProxy(proxy)
    const { hostname: targetHost, port: targetPort } = new URL(origin)
    const target = `${targetHost}:${targetPort || 443}`
    const { request: send } = isTls ? https : http
    const request = send({
      ...connectOptions(timeoutMs),
      host,
      port,
      // Node would take the name from the header Host, which is that of the target.
      servername: isIP(host) ? '' : host,
      method: 'CONNECT',
      path: target,
      headers: {
        Host: target,
        ...(credentials !== undefined && {
          'Proxy-Authorization': `Basic ${Buffer.from(credentials).toString('base64')}`
        })
      },
      agent: false
    })
    const timer = setTimeout(() => {
      request.destroy(Object.assign(new Error('the proxy opened no tunnel in time'), { code: 'ETIMEDOUT' }))
    }, timeoutMs)
    request.once('connect', ({ statusCode = 0 }, socket: Socket) => {
      clearTimeout(timer)
      if (statusCode === 200) return resolve(socket)
      socket.destroy()
      return reject(proxyRejection(statusCode))
    })
    request.once('error', error => {
      clearTimeout(timer)
      reject(error)
    })
    request.end()
  })
}

/** Status 407 means that the URL of the proxy must contain a user name and a password. */
function proxyRejection(status: number): Error {
  return Object.assign(new Error(`The proxy responded with ${status}.`), { code: `PROXY_RESPONDED_${status}` })
}
