// The demo is based on oidc-provider, which sends logout tokens when a person signs out there.
import { createServer, request } from 'node:http'
import test from 'ava'
import { startDemo } from '#src/demo/index.js'
import { serve } from '#src/server.js'
import { createBrowser } from '../helpers/browser.js'
import { discovered, publicOrigin, testConfig, unreachableIdp } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { collectLogs } from '../helpers/logs.js'
import { modes } from '../helpers/modes.js'
import { listen } from '../helpers/ports.js'
import { openCallback } from '../helpers/server.js'
import { signInAtDemo, signOutAtDemo } from '../helpers/sign-in.js'

const scopes = ['openid', 'data:read']

for (const mode of modes) {
  test(`${mode}: when a person signs out at oidc-provider, it ends the sessions of this login and no other session`, async t => {
    // The demo must know the address of the server, and the server that of the demo. So a front has its address first.
    let target = 0
    const front = createServer((incoming, answer) => {
      const { method, url, headers } = incoming
      const outgoing = request({ port: target, host: '127.0.0.1', method, path: url, headers }, response => {
        answer.writeHead(response.statusCode ?? 500, response.headers)
        response.pipe(answer)
      })
      incoming.pipe(outgoing)
    })
    const backChannelLogoutUrl = `http://127.0.0.1:${await listen(t, front)}/api/auth/backchannel-logout`
    const demo = await startDemo({ callbackUrl: `${publicOrigin}/api/auth/callback`, backChannelLogoutUrl })
    t.teardown(() => demo.close())
    const { clientId, clientSecret, issuer } = demo
    const platform = { ...discovered({ issuer }), backChannelLogout: true, clientId, clientSecret }
    const config = testConfig(unreachableIdp, {
      mode,
      logout: 'idp',
      platform: { ...platform, scopes, internalScopes: scopes, publicScopes: ['data:read'] }
    })
    const logs = await collectLogs('info')
    const server = await serve(config, { log: logs.log })
    t.teardown(() => server.close())
    target = server.port

    const newBrowser = () =>
      createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: `http://127.0.0.1:${server.port}` } })
    const signIn = async (browser: ReturnType<typeof newBrowser>, name: string) =>
      t.is((await openCallback(browser, await signInAtDemo(browser, '/api/auth/login', name))).statusCode, 302)
    const [browser, other] = [newBrowser(), newBrowser()]
    await signIn(other, 'grace')
    await signIn(browser, 'ada')
    // The same login at the provider gives one more session here, because the provider still knows the browser.
    const first = browser.clone()
    for (const name of ['platform_session', 'platform_session_login']) browser.cookies.delete(name)
    await signIn(browser, 'ada')
    t.is((await first.fetch('/api/auth/profile')).statusCode, 200)

    await signOutAtDemo(browser, '/api/auth/logout')
    await eventually(() => logs.find(({ event }) => event === 'back_channel_logout') !== undefined)
    t.like(
      logs.find(({ event }) => event === 'back_channel_logout'),
      { sessions: 2, by: 'sid' }
    )
    t.is((await first.fetch('/api/auth/profile')).statusCode, 401)
    t.is((await other.fetch('/api/auth/profile')).statusCode, 200)
  })
}
