// A thousand simultaneous requests, each on its own connection, with one session whose access token has just expired.
import test from 'ava'
import { createClock } from '../helpers/clock.js'
import { publicOrigin } from '../helpers/config.js'
import { openCallback, startTestServer } from '../helpers/server.js'
import { signInAtDemo } from '../helpers/sign-in.js'
import { start } from './setup.js'

const cases = [
  { mode: 'dual', route: '/api/auth/token', calls: 2 },
  { mode: 'single', route: '/api/auth/profile', calls: 1 }
] as const

for (const { mode, route, calls } of cases) {
  test(`${mode} mode: a thousand simultaneous requests for ${route} cause one refresh, and a later request causes none`, async t => {
    const clock = createClock()
    const demo = await start(t, { callbackUrl: `${publicOrigin}/api/auth/callback`, now: clock.now })
    const { issuer, clientId, clientSecret } = demo
    const discovered = {
      authorizationEndpoint: undefined,
      tokenEndpoint: undefined,
      userinfoEndpoint: undefined,
      revocationEndpoint: undefined,
      endSessionEndpoint: undefined
    }
    const platform = { issuer, clientId, clientSecret, ...discovered }
    const { browser, server } = await startTestServer(t, { mode, clock, logLevel: 'warn', overrides: { platform } })
    await openCallback(browser, await signInAtDemo(browser, '/api/auth/login', 'Ada Lovelace'))
    const cookie = browser.cookies.header(new URL(publicOrigin)) ?? ''
    const before = demo.calls.refreshToken
    clock.advanceSeconds(3600)

    browser.connectTo(publicOrigin, `http://127.0.0.1:${server.port}`)
    const asked = Array.from({ length: 1000 }, () => browser.get(route, { headers: { cookie } }))
    const answers = await Promise.all(asked)
    t.is(answers.filter(({ statusCode }) => statusCode === 200).length, 1000)
    t.is(new Set(answers.map(({ body }) => String(body))).size, 1)
    t.true(answers.every(({ setCookies }) => setCookies.some(({ name }) => name === 'platform_session')))
    t.is(demo.calls.refreshToken - before, calls)

    clock.advanceSeconds(10)
    t.is((await browser.get(route, { headers: { cookie } })).statusCode, 200)
    t.is(demo.calls.refreshToken - before, calls)
    t.is(demo.calls.reusedRefreshToken, 0)
  })
}
