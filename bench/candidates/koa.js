/**
 * Bare Koa, the reference for the other candidates. It gets the same cookies but does not read them. It gives the same
 * responses and makes the same number of provider calls, but it stores and checks nothing.
 */
import Koa from 'koa'
import { createSession, createSessions } from '../sessions.js'
import { DISPLAY_NAME } from '../settings.js'
import {
  CALLBACK_PATH,
  createProviderCalls,
  FORWARD_AUTH_PATH,
  LOGIN_PATH,
  listen,
  PROFILE_PATH,
  TOKEN_PATH,
  tokenObject
} from './common.js'

// Bare Koa cannot read the session. A separate cookie tells it that the session has expired.
const STALE = 'stale=1; '

/**
 * @param {import('../settings.js').Bench} bench
 * @returns {Promise<import('./common.js').Candidate>}
 */
export async function start({ secret, session, providerUrl }) {
  const { cookie } = createSessions(secret)
  const provider = createProviderCalls(providerUrl)
  const setCookie = `${cookie(createSession(2000))}; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax`
  const location = `${providerUrl}/authorize?client_id=bench&response_type=code&scope=data%3Aread&state=${'s'.repeat(256)}`

  const routes = {
    async [TOKEN_PATH](ctx) {
      const sent = ctx.req.headers.cookie
      if (!sent) {
        ctx.body = null
        ctx.status = 401
        return
      }
      if (sent.startsWith(STALE)) await refresh(ctx)
      ctx.body = tokenObject(session)
    },
    async [FORWARD_AUTH_PATH](ctx) {
      ctx.body = ''
    },
    async [PROFILE_PATH](ctx) {
      const { name } = await provider.userInfo()
      ctx.body = { name: name === DISPLAY_NAME ? name : '' }
    },
    async [LOGIN_PATH](ctx) {
      redirect(ctx, location)
    },
    async [CALLBACK_PATH](ctx) {
      await refresh(ctx)
      redirect(ctx, '/')
    }
  }

  async function refresh(ctx) {
    await provider.tokens()
    await provider.tokens()
    ctx.set('Set-Cookie', setCookie)
  }

  const app = new Koa()
  app.use(ctx => routes[ctx.path](ctx))
  return {
    port: await listen(app.callback()),
    cookie: session => (session.expires_at < Date.now() ? STALE : '') + cookie(session)
  }
}

function redirect(ctx, location) {
  ctx.set('Location', location)
  ctx.body = null
  ctx.status = 302
}
