// Requests to the forward-auth listener, as a gateway (for example nginx with auth_request) sends them.

import { once } from 'node:events'
import { type IncomingMessage, type RequestOptions, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { sessionHeader } from '../web/support.js'
import type { Browser } from './browser.js'

export async function askForwardAuth(port: number, options: Pick<RequestOptions, 'method' | 'path' | 'headers'> = {}) {
  const sent = request({ host: '127.0.0.1', port, agent: false, ...options }).end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    authorization: response.headers.authorization,
    body: await text(response)
  }
}

/**
 * Asks the listener about a request of `browser`. The gateway does not pass the cookies of the response on to the
 * browser.
 */
export function askAbout(port: number, browser: Browser, headers: Record<string, string> = {}) {
  return askForwardAuth(port, { headers: { cookie: sessionHeader(browser), ...headers } })
}
