/** undici without rules, session, header lists or checks. It shows the minimum cost of forwarding, the reference for the proxy. */
import { Pool } from 'undici'
import { listen } from './common.js'

/** @type {import('./common.js').Start} */
export async function start({ providerUrl, session }) {
  const pool = new Pool(providerUrl)
  const authorization = `Bearer ${session.internal_token}`
  const port = await listen((request, response) => {
    const { accept, 'accept-encoding': acceptEncoding } = request.headers
    const headers = { accept, 'accept-encoding': acceptEncoding, authorization }
    pool
      .stream({ path: request.url, method: request.method, headers }, ({ statusCode, headers }) => {
        const { 'content-type': type, 'content-length': length } = headers
        return response.writeHead(statusCode, { 'Content-Type': type, 'Content-Length': length })
      })
      .catch(() => response.destroy())
  })
  return { port, cookie: () => '' }
}
