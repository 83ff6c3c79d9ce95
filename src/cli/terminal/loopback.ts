import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'

const BODY_LIMIT = 1000

/**
 * Asks a server on this machine. Uses no proxy, even if Node uses one for other requests (NODE_USE_ENV_PROXY). Rejects if there is
 * no response within the time limit.
 */
export async function askLoopback(url: string, timeoutMs: number) {
  // Node's own agent would use the proxy.
  const agent = new http.Agent()
  // The request can also fail after `once` has stopped listening.
  const request = http.get(url, { agent, signal: AbortSignal.timeout(timeoutMs) }).on('error', () => {})
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    let body = ''
    for await (const part of response.setEncoding('utf8')) {
      body += part
      if (body.length > BODY_LIMIT) throw new Error('the response is too long')
    }
    return { status: response.statusCode ?? 0, body }
  } finally {
    agent.destroy()
  }
}
