import http from 'node:http'

const BODY_LIMIT = 1000

/**
 * Asks a server on this machine. Uses no proxy, even if Node uses one for other requests (NODE_USE_ENV_PROXY). Rejects if there is
 * no response within the time limit.
 */
export function askLoopback(
  url: string,
  timeoutMs: number
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    // Node's own agent would use the proxy.
    const agent = new http.Agent()
    const request = http.get(url, { agent }, response => {
      let body = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        body += part
        if (body.length > BODY_LIMIT) request.destroy(new Error('the response is too long'))
      })
      response.once('end', () => end(() => resolve({ status: response.statusCode ?? 0, body })))
      response.once('error', error => end(() => reject(error)))
    })
    const timer = setTimeout(() => {
      request.destroy(new Error(`no response within ${timeoutMs / 1000} seconds`))
    }, timeoutMs)
    function end(settle: () => void) {
      clearTimeout(timer)
      agent.destroy()
      settle()
    }
    request.once('error', error => end(() => reject(error)))
  })
}
