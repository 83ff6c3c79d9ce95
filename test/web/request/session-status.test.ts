// `Session-Status` says that a request was not executed. A page sends such a request again, so no other response may have it.
import test from 'ava'
import type { Context, Middleware } from 'koa'
import { requireTokens } from '#src/web/routes/custom-routes.js'
import { askAbout, askForwardAuth } from '../../helpers/gateway.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { startProxy, startUpstream } from '../../helpers/upstream.js'
import { handledBy, startDiscovered } from '../support.js'

/** The headers as a page sees them. */
const seen = ({ headers }: { readonly headers: Readonly<Record<string, unknown>> }) => ({
  status: headers['session-status'],
  user: headers['session-user']
})
const nothing = { status: undefined, user: undefined }

test('the profile, the token, rules and custom routes say that a request was not executed, and forward-auth does', async t => {
  const upstream = await startUpstream(t)
  const paths = ['/api/auth/profile', '/api/auth/token', '/api/x', '/own']
  const { browser, clock, idp, newBrowser, server } = await startTestServer(t, {
    mode: 'dual',
    settings: {
      forwardAuth: { address: '127.0.0.1:0' },
      apiProxy: { rules: [`GET,POST /api/x ${upstream.origin}/x`] }
    },
    parts: handledBy((ctx, next) => (ctx.path === '/own' ? requireTokens(ctx as Context, next) : next()))
  })
  const port = server.forwardAuthPort as number
  for (const path of paths) {
    const response = await newBrowser().fetch(path)
    t.is(response.statusCode, 401)
    t.deepEqual(seen(response), { status: 'signed-out', user: undefined }, path)
  }
  t.deepEqual(seen(await askForwardAuth(port)), { status: 'signed-out', user: undefined })
  await signIn(browser)
  t.deepEqual(seen(await askAbout(port, browser)), nothing)
  clock.advanceSeconds(3600)
  idp.failWhen('token', () => faults.status(500))
  for (const path of paths) {
    const response = await browser.fetch(path)
    t.is(response.statusCode, 503)
    t.deepEqual(seen(response), { status: 'retry', user: undefined }, path)
  }
  t.deepEqual(seen(await askAbout(port, browser)), { status: 'retry', user: undefined })
  t.is(upstream.requests.length, 0)
})

const both = { 'Session-Status': 'signed-out', 'session-user': 'invented' }
const handlers: Readonly<Record<string, (ctx: Context) => void>> = {
  'ctx.set': ctx => {
    ctx.set(both)
    ctx.status = 401
  },
  'a thrown error': ctx => ctx.throw(401, 'x', { headers: both }),
  'writeHead with an object': ({ res }) => res.writeHead(401, both).end(),
  'writeHead with a text and an object': ({ res }) => res.writeHead(401, 'No', both).end(),
  'writeHead with a list': ({ res }) => res.writeHead(401, Object.entries(both).flat()).end(),
  'flushHeaders after setHeader': ({ res }) => {
    res.statusCode = 401
    res.setHeader('session-status', 'signed-out').setHeader('Session-User', 'invented').flushHeaders()
    res.end()
  }
}

for (const [what, handle] of Object.entries(handlers)) {
  test(`a handler cannot set the headers: ${what}`, async t => {
    const custom: Middleware = (ctx, next) => {
      if (ctx.path === '/guarded') return requireTokens(ctx as Context, async () => handle(ctx as Context))
      return ctx.path === '/open' ? handle(ctx as Context) : next()
    }
    const { browser } = await startTestServer(t, { parts: handledBy(custom) })
    t.deepEqual(seen(await browser.fetch('/open')), nothing)
    await signIn(browser)
    const response = await browser.fetch('/guarded')
    t.is(response.statusCode, 401)
    t.is(seen(response).status, undefined)
    t.regex(String(seen(response).user), /^[\w-]{12}$/)
  })
}

test('after a handler, no response says that the request was not executed', async t => {
  let ran = 0
  const { browser, clock, idp, logs } = await startTestServer(t, {
    parts: {
      extension: app =>
        void app.use(requireTokens).use(async (ctx, next) => {
          ran += 1
          clock.advanceSeconds(3600)
          idp.failWhen('token', () => faults.status(500))
          return ctx.path === '/busy' ? ctx.throw(503, 'x', { expose: true }) : requireTokens(ctx, next)
        })
    }
  })
  await signIn(browser)
  for (const path of ['/busy', '/twice']) {
    idp.heal()
    const response = await browser.fetch(path)
    t.is(response.statusCode, 503)
    t.is(seen(response).status, undefined, path)
    t.is(response.headers['retry-after'], undefined, path)
    t.like(logs.all('request_failed').at(-1), { path, executed: true })
    clock.advanceSeconds(60)
  }
  t.is(ran, 2)
})

test('a response of an API never has Session-Status', async t => {
  for (const status of [200, 401, 503]) {
    const upstream = await startUpstream(t, (_, response) => response.writeHead(status, both).end())
    const { browser } = await startProxy(t, { rules: [`POST /api/x ${upstream.origin}/x`] })
    const response = await browser.fetch('/api/x', { method: 'POST' })
    t.is(response.statusCode, status === 401 ? 502 : status)
    t.is(seen(response).status, undefined)
    t.regex(String(seen(response).user), /^[\w-]{12}$/)
  }
})

test('Session-User is the same in all sessions of a user, and different for each user and after each login without openid', async t => {
  for (const openid of [true, false]) {
    const scopes = openid ? ['openid', 'data:read'] : ['data:read']
    const { browser, idp, newBrowser } = await startDiscovered(t, { settings: { platform: { scopes } } })
    const userOf = async (visitor: typeof browser) => {
      await signIn(visitor)
      return seen(await visitor.fetch('/api/auth/profile')).user
    }
    const first = await userOf(browser)
    t.is(seen(await browser.fetch('/api/auth/profile')).user, first)
    const again = await userOf(newBrowser())
    t.is(again === first, openid)
    idp.settings.profile = { sub: 'user-2', name: 'Grace Hopper' }
    t.not(await userOf(newBrowser()), first)
  }
})

test('while a secret is being replaced, Session-User has one word for each secret, also for a session that was used before', async t => {
  const { browser, config, server } = await startTestServer(t)
  await signIn(browser)
  const before = seen(await browser.fetch('/api/auth/profile')).user
  const { session } = config
  const secrets = { secret: 'a new secret that has 40 characters or so', previousSecrets: [session.secret] }
  server.replaceSecrets({ ...config, session: { ...session, ...secrets } })
  const [first, second, ...others] = String(seen(await browser.fetch('/api/auth/profile')).user).split(' ')
  t.regex(String(first), /^[\w-]{12}$/)
  t.not(first, before)
  t.is(second, String(before))
  t.deepEqual(others, [])
})
