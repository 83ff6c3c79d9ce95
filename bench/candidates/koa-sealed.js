/** Bare Koa that decrypts the session cookie with the server's own code. It shows the cost of the decryption alone. */
import Koa from 'koa'
import { createSessions } from '../sessions.js'
import { listen, tokenObject } from './common.js'

/**
 * @param {import('../settings.js').Bench} bench
 * @returns {Promise<import('./common.js').Candidate>}
 */
export async function start({ secret }) {
  const { open, cookie } = createSessions(secret)
  const app = new Koa()
  app.use(ctx => {
    const record = open(ctx.req.headers.cookie ?? '')
    if (record) {
      ctx.body = tokenObject(record.fields)
    } else {
      ctx.body = null
      ctx.status = 401
    }
  })
  return { port: await listen(app.callback()), cookie }
}
