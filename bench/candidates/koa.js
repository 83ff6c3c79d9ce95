/** Bare Koa, the reference for the other candidates. It gets the same cookies but does not read them, and checks nothing. */
import Koa from 'koa'
import { createSessions } from '../sessions.js'
import { FORWARD_AUTH_PATH, PROFILE_PATH, TOKEN_PATH } from '../settings.js'
import { listen, tokenObject } from './common.js'

/** @type {import('./common.js').Start} */
export async function start({ secret, session }) {
  const bodies = {
    [TOKEN_PATH]: () => tokenObject(session),
    [PROFILE_PATH]: () => ({ name: 'Ada' }),
    [FORWARD_AUTH_PATH]: () => ''
  }
  // The files of the measurement `event-loop`.
  const file = Buffer.alloc(2048, 'x')
  const app = new Koa()
  app.use(async ctx => {
    ctx.body = bodies[ctx.path]?.() ?? file
  })
  return { port: await listen(app.callback()), cookie: createSessions(secret).cookie }
}
