// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import test, { type ExecutionContext } from 'ava'
import { serve } from '#src/server/serve.js'
import { createBrowser } from '../helpers/browser.js'
import { defaultCallbackUrl, discovered, publicOrigin, testConfig, unreachableIdp } from '../helpers/config.js'
import { collectLogs } from '../helpers/logs.js'
import { openCallback } from '../helpers/server.js'
import { signInAtDemo } from '../helpers/sign-in.js'
import { start } from './setup.js'

/** Starts a server that knows only the issuer, the client id and the secret of the demo, and signs its browser in. */
async function startBoth(t: ExecutionContext) {
  const demo = await start(t, { callbackUrl: defaultCallbackUrl })
  const { clientId, clientSecret, proxyRules } = demo
  const idp = { ...unreachableIdp, clientId, clientSecret }
  const config = testConfig(idp, { mode: 'dual', apiProxy: { rules: proxyRules }, platform: discovered(demo) })
  const server = await serve(config, { log: (await collectLogs('info')).log })
  t.teardown(() => server.close())
  const browser = createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: server.url } })
  await openCallback(browser, await signInAtDemo(browser, '/api/auth/login', 'Ada Lovelace'))
  return { demo, browser }
}

test("the demo's proxy rule forwards requests to the demo's platform API, which accepts only the internal token", async t => {
  const { browser, demo } = await startBoth(t)
  const { data } = (await browser.fetch('/api/hubs')).json<{ data: { attributes: { name: string } }[] }>()
  const names = data.map(({ attributes }) => attributes.name)
  t.deepEqual(names, ['Bridges', 'Towers'])
  const hubs = `${demo.issuer}/project/v1/hubs`
  t.is((await fetch(hubs)).status, 401)
  const { access_token } = (await browser.fetch('/api/auth/token')).json<{ access_token: string }>()
  t.is((await fetch(hubs, { headers: { Authorization: `Bearer ${access_token}` } })).status, 403)
})
