// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import test, { type ExecutionContext } from 'ava'
import type { Config } from '#src/config/settings.js'
import { serve } from '#src/server/serve.js'
import { createBrowser } from '../helpers/browser.js'
import { createClock } from '../helpers/clock.js'
import { publicOrigin, testConfig } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { collectLogs } from '../helpers/logs.js'
import { modes } from '../helpers/modes.js'
import { openCallback } from '../helpers/server.js'
import { signInAtDemo } from '../helpers/sign-in.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { start } from './setup.js'

/**
 * Starts a server and the demo as `--demo` does. The server knows only the issuer, the client id and the secret of the
 * demo.
 */
async function startBoth(t: ExecutionContext, mode: Config['mode']) {
  const clock = createClock()
  const demo = await start(t, { callbackUrl: `${publicOrigin}/api/auth/callback`, now: clock.now })
  const wwwroot = await tempFolder(t, { 'index.html': '<!doctype html><title>The application</title>' })
  const { clientId, clientSecret, issuer, proxyRules } = demo
  const config = testConfig(
    { clientId, clientSecret, ...endpoints('') },
    {
      mode,
      wwwroot,
      apiProxy: { rules: proxyRules },
      platform: { issuer, ...endpoints(undefined) }
    }
  )
  const logs = await collectLogs('info')
  const server = await serve(config, { now: clock.now, log: logs.log })
  t.teardown(() => server.close())
  const newBrowser = () =>
    createBrowser(t, {
      origin: publicOrigin,
      connectTo: { [publicOrigin]: `http://127.0.0.1:${server.port}` },
      now: clock.now
    })
  return { demo, clock, logs, newBrowser, browser: newBrowser() }
}

function endpoints<T>(address: T) {
  return {
    authorizationEndpoint: address,
    tokenEndpoint: address,
    userinfoEndpoint: address,
    revocationEndpoint: address,
    endSessionEndpoint: address
  }
}

for (const mode of modes) {
  const callsPerRefresh = mode === 'dual' ? 2 : 1

  test(`${mode} mode: a user signs in, gets a profile before and after the token expires, and signs out`, async t => {
    const { demo, clock, logs, browser } = await startBoth(t, mode)
    const callback = await openCallback(browser, await signInAtDemo(browser, '/api/auth/login', 'Ada Lovelace'))
    t.is(callback.statusCode, 302)
    t.is(callback.headers.location, '/')
    t.deepEqual((await browser.fetch('/api/auth/profile')).json(), { name: 'Ada Lovelace' })
    const refreshesSoFar = demo.calls.refreshToken
    t.is(refreshesSoFar, callsPerRefresh - 1)

    clock.advanceSeconds(3600)
    t.deepEqual((await browser.fetch('/api/auth/profile')).json(), { name: 'Ada Lovelace' })
    t.is(demo.calls.refreshToken, refreshesSoFar + callsPerRefresh)
    t.is(demo.calls.reusedRefreshToken, 0)

    t.is((await browser.navigate('/api/auth/logout')).headers.location, '/')
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
    await eventually(() => logs.first('refresh_token_revoked') !== undefined)
    const login = await browser.navigate('/api/auth/login', { follow: true })
    t.regex(login.text(), /<label for="user">/, 'the demo asks who is signing in')
  })
}

for (const mode of modes) {
  test(`${mode} mode: the demo's proxy rules forward requests to the demo's platform API`, async t => {
    const { browser } = await startBoth(t, mode)
    await openCallback(browser, await signInAtDemo(browser, '/api/auth/login', 'Ada Lovelace'))
    const { data } = (await browser.fetch('/api/hubs')).json<{ data: { attributes: { name: string } }[] }>()
    const hubs = data.map(({ attributes }) => attributes.name)
    t.deepEqual(hubs, ['Bridges', 'Towers'])
    const body = JSON.stringify({ title: 'A window is missing' })
    const posted = await browser.fetch('/api/issues/p1/issues', { method: 'POST', body })
    t.is(posted.statusCode, 201)
    const { results } = (await browser.fetch('/api/issues/p1/issues')).json<{ results: { title: string }[] }>()
    t.is(results.at(-1)?.title, 'A window is missing')
    t.is((await browser.fetch('/api/issues/p1/issues', { method: 'POST', body: '{' })).statusCode, 400)
    const whole = await browser.fetch('/api/files/demo.bin')
    t.is(whole.body.length, 4 * 1024 * 1024)
    for (const [range, from, to] of [
      ['bytes=10-19', 10, 20],
      ['bytes=-5', -5, undefined],
      ['bytes=4194300-', 4_194_300, undefined]
    ] as const) {
      const part = await browser.fetch('/api/files/demo.bin', { headers: { Range: range } })
      t.is(part.statusCode, 206)
      t.deepEqual(part.body, whole.body.subarray(from, to))
    }
    t.is((await browser.fetch('/api/files/demo.bin', { headers: { Range: 'bytes=9999999-' } })).statusCode, 416)
  })
}

test("the demo's platform API accepts the internal token of the proxy and refuses the public token", async t => {
  const { browser, demo } = await startBoth(t, 'dual')
  const hubs = `${demo.issuer}/project/v1/hubs`
  t.is((await fetch(hubs)).status, 401)
  await openCallback(browser, await signInAtDemo(browser, '/api/auth/login', 'Ada Lovelace'))
  const { access_token } = (await browser.fetch('/api/auth/token')).json<{ access_token: string }>()
  t.is((await browser.fetch('/api/hubs')).statusCode, 200)
  t.is((await fetch(hubs, { headers: { Authorization: `Bearer ${access_token}` } })).status, 403)
})
