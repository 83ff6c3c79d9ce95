/** undici's `request` as most programs would use it, with a piped body and all headers except the hop-by-hop ones. */
import { pipeline } from 'node:stream'
import { Pool } from 'undici'
import { listen } from './common.js'

const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host'])

/**
 * @param {import('../settings.js').Bench} bench
 * @returns {Promise<import('./common.js').Candidate>}
 */
export async function start({ providerUrl, session }) {
  const pool = new Pool(providerUrl)
  const authorization = `Bearer ${session.internal_token}`
  const withoutHopByHop = headers =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)))
  const port = await listen(async (request, response) => {
    try {
      const headers = { ...withoutHopByHop(request.headers), authorization }
      const answer = await pool.request({ path: request.url, method: request.method, headers })
      response.writeHead(answer.statusCode, withoutHopByHop(answer.headers))
      pipeline(answer.body, response, () => {})
    } catch {
      response.destroy()
    }
  })
  return { port, cookie: () => '' }
}
