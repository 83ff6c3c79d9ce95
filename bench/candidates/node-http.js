/** Node without a framework. No candidate can be faster. */
import { createSessions } from '../sessions.js'
import { listen, tokenObject } from './common.js'

/**
 * @param {import('../settings.js').Bench} bench
 * @returns {Promise<import('./common.js').Candidate>}
 */
export async function start({ secret, session }) {
  const port = await listen((request, response) => {
    if (!request.headers.cookie) {
      response.writeHead(401, { 'Content-Length': 0 }).end()
      return
    }
    const body = JSON.stringify(tokenObject(session))
    const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(body) }
    response.writeHead(200, headers).end(body)
  })
  return { port, cookie: createSessions(secret).cookie }
}
