// Other Koa applications in the same process. koa-mount runs the middleware of an application with the context of another, and
// removes the prefix from the path meanwhile.
import http from 'node:http'
import test from 'ava'
import Koa, { type Context, type Middleware, type Next } from 'koa'
import compose from 'koa-compose'
import { createApp } from '#src/server/start-server.js'
import { requireTokens } from '#src/web/routes/custom-routes.js'
import { createBrowser } from '../../helpers/browser.js'
import { publicOrigin, testConfig } from '../../helpers/config.js'
import { createHostileIdp } from '../../helpers/hostile-idp/index.js'
import { collectLogs } from '../../helpers/logs.js'
import { listen } from '../../helpers/ports.js'
import { signIn } from '../../helpers/server.js'

function mount(prefix: string, { middleware }: Koa): Middleware {
  const mounted = compose(middleware as Middleware[])
  return async (ctx: Context, next: Next) => {
    const { path } = ctx
    if (!path.startsWith(prefix)) return next()
    ctx.path = path.slice(prefix.length) || '/'
    await mounted(ctx, async () => {
      ctx.path = path
      await next()
    }).finally(() => {
      ctx.path = path
    })
  }
}

function counting(): Koa {
  return new Koa().use(requireTokens as Middleware).use(ctx => {
    const session = ctx.session as unknown as { visits?: number }
    session.visits = (session.visits ?? 0) + 1
    ctx.body = { path: ctx.path, visits: session.visits, hasToken: ctx.state.tokens.internal.access_token.length > 0 }
  })
}

const arrangements: Readonly<Record<string, (server: Koa) => Koa>> = {
  'another application mounted in the server': server => server.use(mount('/shop', counting())),
  'the server mounted in another application': server =>
    new Koa().use(mount('', server)).use(mount('/shop', counting())),
  'both mounted in a third application': server =>
    new Koa().use(mount('', new Koa().use(mount('', server.use(mount('/shop', counting()))))))
}

for (const [what, arrange] of Object.entries(arrangements)) {
  test(`requireTokens and ctx.session work with ${what}`, async t => {
    const idp = await createHostileIdp(t)
    const { log } = await collectLogs()
    const app = arrange(createApp(testConfig(idp, { mode: 'dual' }), { log }))
    const port = await listen(t, http.createServer(app.callback()))
    const browser = createBrowser(t, {
      origin: publicOrigin,
      connectTo: { [publicOrigin]: `http://127.0.0.1:${port}` }
    })
    const refused = await browser.fetch('/shop/cart')
    t.deepEqual([refused.statusCode, refused.text()], [401, ''])
    await signIn(browser)
    for (const visits of [1, 2]) {
      t.deepEqual((await browser.fetch('/shop/cart')).json(), { path: '/cart', visits, hasToken: true })
    }
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })
}

test('a header that outer middleware has set stays, unless the server sets it, too', async t => {
  const idp = await createHostileIdp(t)
  const { log } = await collectLogs()
  const outer = new Koa().use((ctx, next) => {
    ctx.set({
      'X-Frame-Options': 'DENY',
      'Cache-Control': 'public',
      'Session-Status': 'retry',
      'X-Request-Id': 'outer'
    })
    return next()
  })
  const app = outer.use(mount('', createApp(testConfig(idp, { mode: 'dual' }), { log })))
  const port = await listen(t, http.createServer(app.callback()))
  const connectTo = { [publicOrigin]: `http://127.0.0.1:${port}` }
  const browser = createBrowser(t, { origin: publicOrigin, connectTo })
  await signIn(browser)
  const { statusCode, headers } = await browser.fetch('/api/auth/token', { headers: { 'x-request-id': 'abc' } })
  t.is(statusCode, 200)
  t.like(headers, { 'x-frame-options': 'DENY', 'cache-control': 'no-store', 'x-request-id': 'abc' })
  t.is(headers['session-status'], undefined)
})

test('in an application beside the server, requireTokens says what to do', async t => {
  const beside = counting()
  const errors: unknown[] = []
  beside.on('error', error => errors.push(error))
  const port = await listen(t, http.createServer(beside.callback()))
  t.is((await fetch(`http://127.0.0.1:${port}/`)).status, 500)
  t.regex(
    String(errors),
    /works only in the application of startServer or createApp\. Add your middleware, or another Koa/
  )
})
