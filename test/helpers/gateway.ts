// Requests to the forward-auth listener, as a gateway (for example nginx with auth_request) sends them.

import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'node:http'
import { sessionHeader } from '../http/support.js'
import type { Browser } from './browser.js'

interface GatewayAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly authorization: string | undefined
  readonly body: string
}

interface GatewayRequest {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
}

export function askForwardAuth(port: number, { method = 'GET', path = '/', headers = {} }: GatewayRequest = {}) {
  return new Promise<GatewayAnswer>((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, response => {
      const chunks: Buffer[] = []
      response.on('data', chunk => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          authorization: response.headers.authorization,
          body: Buffer.concat(chunks).toString()
        })
      )
    })
    sent.on('error', reject)
    sent.end()
  })
}

/**
 * Asks the listener about a request of `browser`. The gateway does not pass the cookies of the answer on to the
 * browser.
 */
export function askAbout(port: number, browser: Browser, headers: Record<string, string> = {}): Promise<GatewayAnswer> {
  return askForwardAuth(port, { headers: { cookie: sessionHeader(browser), ...headers } })
}
