/** Bare Koa, the reference for the other candidates. It gets the same cookies but does not read them, and checks nothing. */
import Koa from 'koa'
import { createSessions } from '../sessions.js'
import { FORWARD_AUTH_PATH, TOKEN_PATH } from '../settings.js'
import { listen, tokenObject } from './common.js'

/** @type {import('./common.js').Start} */
export async function start({ secret, session }) {
  const bodies = { [TOKEN_PATH]: () => tokenObject(session), [FORWARD_AUTH_PATH]: () => '' }
  const app = new Koa()
  app.use(async ctx => {
    ctx.body = bodies[ctx.path]()
  })
  return { port: await listen(app.callback()), cookie: createSessions(secret).cookie }
}
