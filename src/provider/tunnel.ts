import http from 'node:http'
import https from 'node:https'
import { isIP, type Socket } from 'node:net'
import { connectOptions } from '../base/connect-options.js'
import { parseProxy, proxyRejection } from './agents.js'

/**
 * Opens a tunnel through an HTTP proxy (RFC 9110 section 9.3.6). The proxy sees only the host and the port.
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
