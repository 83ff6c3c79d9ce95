// Two servers that share a Redis, and an account that loses its right: nobody gets its new tokens, from either server.
import { askAbout } from '../helpers/gateway.js'
import { modes } from '../helpers/modes.js'
import { testWithRedis as test } from '../helpers/redis.js'
import { signIn } from '../helpers/server.js'
import { startUpstream } from '../helpers/upstream.js'
import { copyAt, profileStatus, startServers } from './deployment.js'

const platform = {
  scopes: ['openid', 'data:read'],
  internalTokenScopes: ['openid', 'data:read'],
  publicTokenScopes: ['data:read']
}

for (const mode of modes) {
  for (const store of ['cookie', 'redis'] as const) {
    test(`${mode}, session.store: ${store}: while a server waits for the user info of an account that was removed, the other server gives out no token`, async t => {
      const upstream = await startUpstream(t)
      const { servers, idp, clock } = await startServers(t, {
        mode,
        settings: {
          access: { allow: ['groups=admins'] },
          forwardAuth: { address: '127.0.0.1:0' },
          session: { store },
          platform,
          apiProxy: { rules: [`GET /data/** ${upstream.origin}/data/**`] }
        }
      })
      const [{ browser }, two] = servers
      idp.settings.quirks = { idTokenOnRefresh: true }
      const { profile } = idp.settings
      idp.settings.profile = { ...profile, groups: 'admins' }
      await signIn(browser)
      const other = copyAt(two, browser)
      idp.settings.profile = profile
      clock.advanceSeconds(3600)
      const before = idp.tokenRequests.length
      const hold = idp.hold('userinfo')
      const refresh = browser.fetch('/api/auth/profile')
      await hold.arrived()
      const asked = Promise.all([
        other.fetch('/api/auth/token'),
        other.fetch('/api/auth/profile'),
        other.fetch('/data/1'),
        askAbout(two.server.forwardAuthPort as number, other)
      ])
      // The other server waits at most 5 seconds for the lease.
      let isSettled = false
      void asked.finally(() => {
        isSettled = true
      })
      while (!isSettled) {
        clock.advance(100)
        await new Promise(resolve => setTimeout(resolve, 5))
      }
      const [token, ...others] = await asked
      t.is(token.statusCode, mode === 'dual' ? 503 : 404)
      for (const response of others) t.is('statusCode' in response ? response.statusCode : response.status, 503)
      t.is(idp.tokenRequests.length - before, 1)
      hold.release()
      t.is((await refresh).statusCode, 403)
      t.is(await profileStatus(other), 403)
      t.deepEqual(upstream.requests, [])
      t.false(idp.issued.refreshTokens.some(({ value }) => idp.isAlive(value)))
    })
  }
}
