import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import type Koa from 'koa'
import { pino } from 'pino'
import type { Config } from '#src/config/settings.js'
import type { AppParts } from '#src/services.js'
import { createBrowser } from '../helpers/browser.js'
import { createClock } from '../helpers/clock.js'
import { testConfig } from '../helpers/config.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { signIn } from '../helpers/server.js'

interface Example {
  createExample(config: Config, options: { hubsUrl: string; parts: Partial<AppParts> }): Koa
}

async function startExample(t: ExecutionContext) {
  const clock = createClock()
  const idp = await createHostileIdp(t, { now: clock.now })
  const asked: (string | undefined)[] = []
  const platform = await listen(t, (request, response) => {
    asked.push(request.headers.authorization)
    response.setHeader('content-type', 'application/json')
    response.end('{"data":["a hub"]}')
  })
  const config = testConfig(idp, { mode: 'dual' })
  const specifier = new URL('../../examples/own-route.js', import.meta.url).href
  const { createExample } = (await import(specifier)) as Example
  const parts = { now: clock.now, log: pino({ level: 'silent' }) }
  const own = await listen(t, createExample(config, { hubsUrl: platform, parts }).callback())
  const { origin } = new URL(config.platform.callbackUrl)
  const browser = createBrowser(t, { origin, connectTo: { [origin]: own }, now: clock.now })
  return { clock, idp, asked, browser }
}

async function listen(t: ExecutionContext, handle: http.RequestListener): Promise<string> {
  const server = http.createServer(handle).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('the example calls the platform with the internal token, renewed when it has expired', async t => {
  const { browser, clock, idp, asked } = await startExample(t)
  await signIn(browser)
  const first = await browser.get('/api/hubs')
  t.deepEqual(first.json(), { data: ['a hub'] })

  clock.advanceSeconds(3600)
  const second = await browser.get('/api/hubs')
  t.is(second.statusCode, 200)
  t.true(second.setCookies.length > 0, 'the renewed session reaches the browser')
  t.is(idp.tokenRequests.length, 4, 'two calls for the login, two for the renewal')
  t.not(asked[0], asked[1])
  t.regex(String(asked[1]), /^Bearer .+/)
  const { access_token: publicToken } = (await browser.get('/api/auth/token')).json() as { access_token: string }
  t.false(asked.includes(`Bearer ${publicToken}`), 'never with the public one')
})

test('the example answers 401 with an empty body when nobody is signed in, and asks nobody', async t => {
  const { browser, asked } = await startExample(t)
  const response = await browser.get('/api/hubs')
  t.is(response.statusCode, 401)
  t.is(response.text(), '')
  t.deepEqual(asked, [])
})
