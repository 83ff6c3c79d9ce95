// A logout token ends a thousand sessions of one user at four replicas, which are separate processes and share a Redis.
import { createBrowser } from '../../helpers/browser.js'
import { defaultCallbackUrl, discovered, publicOrigin, testConfig } from '../../helpers/config.js'
import { createHostileIdp } from '../../helpers/hostile-idp/index.js'
import { startRedis, serialTestWithRedis as test } from '../../helpers/redis.js'
import { openCallback, startLogin } from '../../helpers/server.js'
import { startServerProcess } from '../../helpers/server-process/index.js'
import { eachOf } from '../chaos/logins.js'

const SESSIONS = 1000
const REPLICAS = 4

test('a logout token ends a thousand sessions of one user at four replicas, and the time is reported', async t => {
  const { url, admin } = await startRedis(t)
  const idp = await createHostileIdp(t, { callbackUrl: defaultCallbackUrl })
  idp.settings.idTokenClaims = claims => ({ ...claims, sid: `login-${idp.issued.idTokens.length}` })
  const platform = { ...discovered(idp), backchannelLogout: true, scopes: ['openid', 'data:read'] }
  const config = testConfig(idp, { platform, redis: { url }, log: { level: 'info', requests: false } })
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => startServerProcess(t, config)))
  const addressOf = (index: number) => `http://127.0.0.1:${replicas[index % REPLICAS]?.port}`
  const newBrowser = (index: number) =>
    createBrowser(t, { origin: publicOrigin, connectTo: { [publicOrigin]: addressOf(index) } })
  const browsers = Array.from({ length: SESSIONS }, (_, index) => newBrowser(index))
  await eachOf(browsers, async browser => {
    await openCallback(browser, await startLogin(browser))
  })
  const before = await admin.info('memory')

  const tokenBefore = performance.now()
  const response = await newBrowser(0).request('POST', '/api/auth/backchannel-logout', {
    form: { logout_token: idp.logoutToken({ sub: 'user-1' }) }
  })
  const ms = Math.round(performance.now() - tokenBefore)
  t.is(response.statusCode, 200)

  const statuses = new Map<number, number>()
  await eachOf(browsers, async browser => {
    for (let index = 0; index < REPLICAS; index++) {
      browser.connectTo(publicOrigin, addressOf(index))
      const { statusCode } = await browser.fetch('/api/auth/profile')
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
    }
  })
  t.deepEqual([...statuses], [[401, SESSIONS * REPLICAS]])
  t.log(`ended ${SESSIONS} sessions in ${ms} ms; Redis used ${/used_memory_human:(\S+)/.exec(before)?.[1]}`)
})
