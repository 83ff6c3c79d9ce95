// An application that uses this server as a library can store its own data in ctx.session, which koa-session provides.
import { PassThrough } from 'node:stream'
import test, { type ExecutionContext } from 'ava'
import type { Context, Middleware } from 'koa'
import { requireTokens } from '#src/web/routes/custom-routes.js'
import type { Extension } from '#src/web/routes/extension.js'
import { defaultCallbackUrl } from '../../helpers/config.js'
import { createDeferred } from '../../helpers/deferred.js'
import { eventually } from '../../helpers/eventually.js'
import { modes } from '../../helpers/modes.js'
import type { TestServerOptions } from '../../helpers/server.js'
import {
  afterAnHour,
  guarded,
  handledBy,
  openedFields,
  sessionCookies,
  sessionCookiesSet,
  startSignedIn,
  statusesOf
} from '../support.js'

type Handler = (ctx: Context) => unknown

const add: Handler = ctx => {
  ctx.session.cart ??= []
  ctx.session.cart.push(ctx.query.item)
}
const shop: Readonly<Record<string, Handler>> = {
  '/add': add,
  '/cart': ctx => {
    ctx.body = ctx.session.cart ?? []
  }
}

/** Starts a server with handlers behind requireTokens, one for each path, and a browser that is signed in. */
async function startApplication(
  t: ExecutionContext,
  handlers: Readonly<Record<string, Handler>> = {},
  options: TestServerOptions = {}
) {
  const handle: Handler = async ctx => {
    ctx.body = 'done'
    await { ...shop, ...handlers }[ctx.path]?.(ctx)
  }
  return startSignedIn(t, { ...options, parts: { extension: app => void app.use(requireTokens).use(handle) } })
}

/** Returns a handler that adds an item to the cart and then waits until the test calls `open`. */
function slowly() {
  const [arrived, arrive] = createDeferred()
  const [opened, open] = createDeferred()
  const handler: Handler = async ctx => {
    add(ctx)
    arrive()
    await opened
  }
  return { handler, arrived, open }
}

for (const mode of modes) {
  test(`${mode}: a change of ctx.session is saved and survives refreshes`, async t => {
    const server = await startApplication(t, {}, { mode })
    const { browser, idp } = server
    t.is(sessionCookiesSet(await browser.fetch('/add?item=a')).length, 1)
    t.is(sessionCookiesSet(await afterAnHour(server, '/add?item=b')).length, 1, 'one cookie for refresh and change')
    t.is((await afterAnHour(server)).statusCode, 200)
    const cart = await browser.fetch('/cart')
    t.deepEqual(cart.json(), ['a', 'b'])
    t.deepEqual(cart.setCookies, [], 'a handler that changes nothing sets no cookie')
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: a change that is saved late does not overwrite the tokens of a refresh by another request`, async t => {
    const { handler, arrived, open } = slowly()
    const server = await startApplication(t, { '/slow': handler }, { mode })
    const { browser, clock, idp } = server
    clock.advanceSeconds(3599)
    const late = browser.fetch('/slow?item=a')
    await arrived
    clock.advanceSeconds(30)
    t.is((await browser.fetch(guarded)).statusCode, 200)
    t.is((await browser.fetch(guarded)).statusCode, 200, 'the browser has the new tokens')
    const refreshed = openedFields(browser, server)
    clock.advanceSeconds(61)
    open()
    t.is(sessionCookiesSet(await late).length, 1)
    t.deepEqual(openedFields(browser, server), { ...refreshed, cart: ['a'] } as typeof refreshed)
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: a refreshed session and a change reach the browser even if the handler throws, and a change that makes the session too large loses no refreshed tokens`, async t => {
    const handlers: Readonly<Record<string, Handler>> = {
      '/fail': ctx => {
        if (ctx.query.item) add(ctx)
        throw new Error('the shop is closed')
      },
      '/large': ctx => {
        ctx.session.large = Array.from({ length: 20_000 }, () => String.fromCharCode(33 + Math.random() * 90)).join('')
      }
    }
    const server = await startApplication(t, handlers, { mode })
    const { browser, idp } = server
    for (const path of ['/fail', '/fail?item=a']) {
      const failed = await afterAnHour(server, path)
      t.deepEqual([failed.statusCode, sessionCookiesSet(failed).length], [500, 1], path)
      t.is(openedFields(browser, server).refresh_token, idp.issued.refreshTokens.at(-1)?.value)
    }
    const response = await afterAnHour(server, '/large')
    t.deepEqual([response.statusCode, response.json().error], [500, 'session_too_large'])
    t.is(openedFields(browser, server).refresh_token, idp.issued.refreshTokens.at(-1)?.value)
    t.deepEqual((await browser.fetch('/cart')).json(), ['a'])
  })
}

test('an application cannot change the tokens or the maximum age of a session', async t => {
  const server = await startApplication(t, {
    '/tokens': ctx => {
      Object.assign(ctx.session, { refresh_token: 'old', expires_at: 1, own: true })
      ctx.session.maxAge = 1
    },
    '/other': ctx => {
      ctx.session = { other: true }
    }
  })
  const { browser } = server
  const before = openedFields(browser, server)
  const { setCookies } = await browser.fetch('/tokens')
  const ages = setCookies.map(({ attributes }) => attributes['max-age'])
  t.deepEqual(ages, ['86400'])
  t.deepEqual(openedFields(browser, server), { ...before, own: true } as typeof before)
  await browser.fetch('/other')
  t.deepEqual(openedFields(browser, server), { ...before, other: true } as typeof before)
})

test('a change that was not sent back by the browser is lost, although the session is cached in memory', async t => {
  const { browser } = await startApplication(t)
  await browser.fetch('/add?item=a')
  const old = browser.clone()
  for (const item of ['b', 'c', 'd']) await old.clone().fetch(`/add?item=${item}`)
  t.deepEqual((await old.fetch('/cart')).json(), ['a'])
})

test('a change after the response has started is lost, and the log says so', async t => {
  const { browser, logs } = await startApplication(t, {
    '/early': ctx => {
      ctx.res.writeHead(200).end('sent')
      add(ctx)
    }
  })
  const response = await browser.fetch('/early?item=a')
  t.deepEqual([response.statusCode, response.text(), response.setCookies], [200, 'sent', []])
  await eventually(() => logs.first('session_not_saved') !== undefined)
  t.like(logs.first('session_not_saved'), { reason: 'response_started', level: 'warn' })
  t.deepEqual((await browser.fetch('/cart')).json(), [])
})

test('a logout while a handler runs is not undone by a change of the handler', async t => {
  const { handler, arrived, open } = slowly()
  const { browser } = await startApplication(t, { '/slow': handler })
  const late = browser.fetch('/slow?item=a')
  await arrived
  t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
  open()
  t.deepEqual((await late).setCookies, [])
  t.deepEqual(sessionCookies(browser), [])
})

for (const callbackUrl of [defaultCallbackUrl, 'https://app.example/api/auth/callback']) {
  test(`setting ctx.session to null deletes each session cookie once, with the callback URL ${callbackUrl}`, async t => {
    const forget: Handler = ctx => {
      ctx.session = null
    }
    const settings = { platform: { callbackUrl } }
    const server = await startApplication(t, { '/forget': forget }, { mode: 'dual', settings })
    const { browser, idp } = server
    idp.settings.accessTokenLength = 3000
    await afterAnHour(server, '/cart')
    t.is(sessionCookies(browser).length, 2)
    const { setCookies } = await browser.fetch('/forget')
    t.is(new Set(setCookies.map(({ name }) => name)).size, setCookies.length)
    t.deepEqual(sessionCookies(browser), [])
    t.is((await browser.fetch('/cart')).statusCode, 401)
  })
}

test('with two calls of requireTokens in the chain, a change between them is kept', async t => {
  const between: Middleware = async (ctx, next) => {
    if (ctx.path === '/add') add(ctx as Context)
    await next()
  }
  const extension: Extension = app =>
    void app
      .use(requireTokens)
      .use(between)
      .use(requireTokens)
      .use(ctx => {
        ctx.body = ctx.session?.cart ?? []
      })
  const server = await startSignedIn(t, { parts: { extension } })
  const { browser, idp } = server
  const added = await afterAnHour(server, '/add?item=a')
  t.deepEqual(added.json(), ['a'])
  t.is(sessionCookiesSet(added).length, 1)
  t.deepEqual((await browser.fetch('/cart')).json(), ['a'])
  t.is(idp.tokenRequests.length, 2)
})

test('a route without requireTokens gets an error if it saves ctx.session, and the session of the user does not change', async t => {
  const saving: Middleware = async (ctx, next) => {
    if (ctx.path === '/shop') return requireTokens(ctx as never, async () => {})
    if (ctx.path !== '/own') return next()
    const session = ctx.session as unknown as { cart: string[]; save(): Promise<void> }
    session.cart = ['a']
    return session.save()
  }
  const server = await startSignedIn(t, { parts: handledBy(saving) })
  const { browser } = server
  const before = openedFields(browser, server)
  // The first request to a route with requireTokens loads koa-session, and koa-session then defines ctx.session for all routes.
  for (const path of ['/own', '/shop', '/own']) {
    const { statusCode, setCookies } = await browser.fetch(path)
    t.deepEqual([statusCode, setCookies], [path === '/own' ? 500 : 404, []])
    t.deepEqual(openedFields(browser, server), before)
  }
})

test('ctx.state.sessionSignal ends the events of a handler at a logout, and becomes a 401 where nothing was sent yet', async t => {
  const [started, start] = createDeferred<AbortSignal>()
  const events: Handler = ctx => {
    const { sessionSignal } = ctx.state
    t.is(ctx.state.sessionSignal, sessionSignal)
    const body = new PassThrough()
    body.write('data: 1\n\n')
    sessionSignal.addEventListener('abort', () => body.end())
    ctx.body = body
  }
  const waiting: Handler = async ctx => {
    const { sessionSignal } = ctx.state
    start(sessionSignal)
    await new Promise((_, reject) => sessionSignal.addEventListener('abort', () => reject(sessionSignal.reason)))
  }
  const { browser } = await startApplication(t, { '/events': events, '/waiting': waiting })
  const responses = [browser.fetch('/events'), browser.fetch('/waiting')]
  await started
  await browser.navigate('/api/auth/logout')
  t.deepEqual(statusesOf(await Promise.all(responses)), [200, 401])
})

test('ctx.state.sessionSignal does not abort when the response has been sent', async t => {
  const signals: AbortSignal[] = []
  const { browser } = await startApplication(t, { '/quick': ctx => void signals.push(ctx.state.sessionSignal) })
  await browser.fetch('/quick')
  await browser.navigate('/api/auth/logout')
  t.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false]
  )
})
