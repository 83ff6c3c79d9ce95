// The demo is based on oidc-provider, which sends logout tokens when a user signs out there.
import test from 'ava'
import { getGlobalDispatcher, ProxyAgent, setGlobalDispatcher } from 'undici'
import { loadConfig } from '#src/config/load.js'
import { startServer } from '#src/server/start-server.js'
import { createBrowser } from '../helpers/browser.js'
import { eventually } from '../helpers/eventually.js'
import { collectLogs } from '../helpers/logs.js'
import { modes } from '../helpers/modes.js'
import { openCallback } from '../helpers/server.js'
import { signInAtDemo, signOutAtDemo } from '../helpers/sign-in.js'
import { tempFolder } from '../helpers/temp-folder.js'

const scopes = ['openid', 'data:read']

for (const mode of modes) {
  test.serial(
    `${mode}: when a user signs out at oidc-provider, it ends the sessions of this login and no other session, and Node's proxy is not used for this machine`,
    async t => {
      // As NODE_USE_ENV_PROXY sets it. Nothing listens on port 1.
      const dispatcher = getGlobalDispatcher()
      setGlobalDispatcher(new ProxyAgent('http://127.0.0.1:1'))
      t.teardown(() => setGlobalDispatcher(dispatcher))
      const settings = {
        mode,
        logout: { revoke: false, idp: true },
        port: 0,
        host: '127.0.0.1',
        platform: { backchannelLogout: true, scopes, internalTokenScopes: scopes, publicTokenScopes: ['data:read'] }
      } as const
      const { config } = await loadConfig({ demo: true, env: {}, cwd: await tempFolder(t), settings })
      const logs = await collectLogs('info')
      const server = await startServer(config, { log: logs.log, demo: true })
      t.teardown(() => server.close())

      const newBrowser = () => createBrowser(t, { origin: server.url })
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

      // The logout ends the session of this browser, and the logout token the other one.
      await signOutAtDemo(browser, '/api/auth/logout')
      await eventually(() => logs.first('backchannel_logout_succeeded') !== undefined)
      t.like(logs.first('backchannel_logout_succeeded'), { sessions: 1, by: 'sid' })
      t.is((await first.fetch('/api/auth/profile')).statusCode, 401)
      t.is((await other.fetch('/api/auth/profile')).statusCode, 200)
    }
  )
}
