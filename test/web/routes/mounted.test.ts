// Other Koa applications in the same process. koa-mount runs the middleware of an application with the context of another, and
// removes the prefix from the path meanwhile.
import http, { type RequestListener } from 'node:http'
import test, { type ExecutionContext } from 'ava'
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
import { startUpstream } from '../../helpers/upstream.js'

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

/** Starts an application that contains the server, and returns a browser. */
async function start(t: ExecutionContext, arrange: (server: Koa) => Koa, wrap = (handle: RequestListener) => handle) {
  const idp = await createHostileIdp(t)
  const upstream = await startUpstream(t)
  const config = testConfig(idp, { mode: 'dual', apiProxy: { rules: [`GET /api/x ${upstream.origin}/x`] } })
  const port = await listen(t, http.createServer(wrap(arrange(createApp(config, await collectLogs())).callback())))
  return createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: `http://127.0.0.1:${port}` } })
}

for (const [what, arrange] of Object.entries(arrangements)) {
  test(`requireTokens and ctx.session work with ${what}`, async t => {
    const browser = await start(t, arrange)
    const refused = await browser.fetch('/shop/cart')
    t.deepEqual([refused.statusCode, refused.text()], [401, ''])
    await signIn(browser)
    for (const visits of [1, 2]) {
      t.deepEqual((await browser.fetch('/shop/cart')).json(), { path: '/cart', visits, hasToken: true })
    }
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })
}

const outerHeaders = { 'X-Frame-Options': 'DENY', 'Cache-Control': 'public', 'Session-Status': 'retry' }
const outer: Middleware = async (ctx, next) => {
  ctx.set({ ...outerHeaders, 'X-Request-Id': 'outer' })
  await next()
  if (ctx.path === '/api/auth/token' && ctx.status === 200) ctx.body = { content: ctx.body }
}

// As on-headers 1.0 does, which express-session and compression use.
const express =
  (handle: RequestListener): RequestListener =>
  (request, response) => {
    const write = response.writeHead.bind(response)
    const set = ([name, value]: readonly string[]) => response.setHeader(String(name), String(value))
    const writeHead = (status: number, pairs: string[][] = []) => pairs.forEach(set) ?? write(status)
    for (const header of Object.entries(outerHeaders)) set(header)
    return handle(request, Object.assign(response, { writeHead }))
  }

test('outer middleware sets other headers before the server does, and replaces writeHead, or the content of the token', async t => {
  const inKoa = await start(t, server => new Koa().use(outer).use(mount('', server)))
  const inExpress = await start(t, server => server, express)
  const ask = (path: string, browser = inKoa) => browser.fetch(path, { headers: { 'x-request-id': 'abc' } })
  for (const browser of [inKoa, inExpress, inKoa, inExpress]) {
    for (const path of ['/api/auth/token', '/api/x']) {
      const { headers } = await ask(path, browser)
      t.like(headers, { 'x-frame-options': 'DENY', 'x-request-id': 'abc', 'x-content-type-options': 'nosniff' })
      t.regex(String(headers['cache-control']), /no-store/)
      t.not(headers['session-status'], 'retry')
    }
    await signIn(browser)
  }
  t.regex(String((await ask('/api/auth/token')).json().content), /^{"access_token":/)
  t.is((await ask('/api/auth/token', inExpress)).statusCode, 200)
})

test('in an application beside the server, requireTokens says what to do', async t => {
  const beside = counting()
  const errors: unknown[] = []
  beside.on('error', error => errors.push(error))
  const port = await listen(t, http.createServer(beside.callback()))
  t.is((await fetch(`http://127.0.0.1:${port}/`)).status, 500)
  t.regex(String(errors), /works only in the application of startServer or createApp\. Add your middleware/)
})
