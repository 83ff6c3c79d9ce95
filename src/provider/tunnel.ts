import http from 'node:http'
import https from 'node:https'
import type { Socket } from 'node:net'
import { connectOptions } from '../base/connect-options.js'
import { proxyRejection } from './agents.js'

/**
 * Opens a tunnel through an HTTP proxy (RFC 9110 section 9.3.6). The proxy sees only the host and the port.
 * @param proxy the URL of the proxy, with a user name and a password if it needs them
 * @param origin the https origin to which the tunnel leads
 */
export function openTunnel(proxy: string, origin: string, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const { protocol, hostname, port, username, password } = new URL(proxy)
    const { hostname: targetHost, port: targetPort } = new URL(origin)
    const target = `${targetHost}:${targetPort || 443}`
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    const { request: send } = protocol === 'https:' ? https : http
    const request = send({
      ...connectOptions(timeoutMs),
      // In a URL, an IPv6 address has brackets.
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port || (protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: target,
      headers: {
        Host: target,
        ...(username !== '' && { 'Proxy-Authorization': `Basic ${Buffer.from(credentials).toString('base64')}` })
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
