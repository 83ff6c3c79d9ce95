/** iron-session on Node without a framework. */
import { getIronSession } from 'iron-session'
import { cookieSetBy, listen, tokenObject } from './common.js'

/**
 * @param {import('../settings.js').Bench} bench
 * @returns {Promise<import('./common.js').Candidate>}
 */
export async function start({ secret }) {
  const options = { password: secret, cookieName: 'session' }
  let given
  const port = await listen(async (request, response) => {
    const session = await getIronSession(request, response, options)
    if (request.url === '/bench/session') {
      Object.assign(session, given)
      await session.save()
      response.end()
    } else if (session.refresh_token) {
      const body = JSON.stringify(tokenObject(session))
      const headers = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': Buffer.byteLength(body) }
      response.writeHead(200, headers).end(body)
    } else {
      response.writeHead(401, { 'Content-Length': 0 }).end()
    }
  })
  return {
    port,
    cookie(session) {
      given = session
      return cookieSetBy(`http://127.0.0.1:${port}/bench/session`)
    }
  }
}
