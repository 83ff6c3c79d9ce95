// Several servers as replicas of one deployment, with one provider and one Redis. The requests of a browser go to different
// replicas.
import type { ExecutionContext } from 'ava'
import type { Browser, BrowserResponse } from '../helpers/browser.js'
import { createClock } from '../helpers/clock.js'
import { defaultCallbackUrl, type TestSettings } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { type RedisServer, serialTestWithRedis, startRedis, testWithRedis } from '../helpers/redis.js'
import { commandsRun, difference } from '../helpers/redis-commands.js'
import { openCallback, signIn, startLogin, startTestServer, type TestServer } from '../helpers/server.js'

interface Replicated {
  readonly servers: readonly [TestServer, TestServer, ...TestServer[]]
  readonly redis: RedisServer
}

async function startReplicated(
  t: ExecutionContext,
  mode: 'single' | 'dual',
  count = 2,
  overrides: TestSettings = {}
): Promise<Replicated> {
  const redis = await startRedis(t)
  const clock = createClock()
  const idp = await createHostileIdp(t, { now: clock.now, callbackUrl: defaultCallbackUrl })
  const start = () =>
    startTestServer(t, { mode, idp, clock, logLevel: 'info', overrides: { ...overrides, redisUrl: redis.url } })
  const servers: [TestServer, TestServer, ...TestServer[]] = [await start(), await start()]
  while (servers.length < count) servers.push(await start())
  return { servers, redis }
}

for (const [mode, calls] of [
  ['single', 1],
  ['dual', 2]
] as const) {
  const path = mode === 'dual' ? '/api/auth/token' : '/api/auth/profile'

  // Serial, because these requests keep the process busy, and a login in another test would get its reply of Redis too late.
  serialTestWithRedis(`${mode}: a thousand requests to four replicas with one session cause one refresh`, async t => {
    const { servers } = await startReplicated(t, mode, 4)
    const [{ browser, idp, clock }] = servers
    await signIn(browser)
    clock.advanceSeconds(3600)
    const before = idp.tokenRequests.length
    const tabs = Array.from({ length: 40 }, (_, index) => {
      const tab = browser.clone()
      servers[index % servers.length]?.connect(tab)
      return tab
    })
    // If a slow machine delays a reply of Redis or the provider beyond the time limit, the response is 503 or 504, and a
    // client tries again.
    const ask = async (tab: Browser): Promise<BrowserResponse> => {
      const response = await tab.fetch(path)
      return response.statusCode >= 503 ? ask(tab) : response
    }
    const started = performance.now()
    const asked = tabs.flatMap(tab =>
      Array.from({ length: 25 }, async () => ({ response: await ask(tab), ms: performance.now() - started }))
    )
    const answers = await Promise.all(asked)
    t.is(answers.filter(({ response }) => response.statusCode === 200).length, 1000)
    t.is(new Set(answers.map(({ response }) => response.text())).size, 1)
    t.is(idp.tokenRequests.length - before, calls)
    t.deepEqual(idp.reuses, [])
    const times = answers.map(({ ms }) => Math.round(ms)).sort((a, b) => a - b)
    t.log(`answered after ${times[0]} to ${times.at(-1)} ms, half of them by ${times[500]} ms`)
  })

  testWithRedis(`${mode}: a refresh by one replica is known to another, for the old and the new cookie`, async t => {
    const { servers } = await startReplicated(t, mode)
    const [one, two] = servers
    const { browser, idp, clock } = one
    await signIn(browser)
    const old = browser.clone()
    clock.advanceSeconds(3600)
    t.is((await browser.fetch(path)).statusCode, 200)
    const after = idp.tokenRequests.length
    for (const tab of [browser, old]) {
      two.connect(tab)
      t.is((await tab.fetch(path)).statusCode, 200)
    }
    t.is(idp.tokenRequests.length, after)
  })
}

testWithRedis('a logout at one replica ends the session at all replicas, for every copy of its cookie', async t => {
  const { servers } = await startReplicated(t, 'dual')
  const [one, two] = servers
  await signIn(one.browser)
  const copy = one.browser.clone()
  two.connect(copy)
  t.is((await copy.fetch('/api/auth/token')).statusCode, 200)
  await one.browser.navigate('/api/auth/logout')
  t.is((await copy.fetch('/api/auth/token')).statusCode, 401)
  t.is((await copy.fetch('/api/auth/profile')).statusCode, 401)
})

testWithRedis('a logout during a refresh at another replica ends the session and revokes the new token', async t => {
  const { servers } = await startReplicated(t, 'single')
  const [one, two] = servers
  const { browser, idp, clock } = one
  await signIn(browser)
  const other = browser.clone()
  two.connect(other)
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const refresh = browser.fetch('/api/auth/profile')
  await hold.arrived()
  t.is((await other.navigate('/api/auth/logout')).statusCode, 302)
  hold.release()
  t.is((await refresh).statusCode, 401)
  await eventually(() => idp.issued.refreshTokens.every(({ value }) => !idp.isAlive(value)))
  t.is((await other.fetch('/api/auth/profile')).statusCode, 401)
})

testWithRedis(
  'if a refresh returns tokens of another person, the session ends at all replicas, for every copy of its cookie',
  async t => {
    const overrides = { platform: { scopes: ['openid', 'data:read'] } }
    const { servers } = await startReplicated(t, 'single', 2, overrides)
    const [one, two] = servers
    const { browser, idp, clock } = one
    idp.settings.quirks = { idTokenOnRefresh: true }
    await signIn(browser)
    const copy = browser.clone()
    two.connect(copy)
    idp.settings.idTokenClaims = claims => ({ ...claims, sub: 'somebody-else' })
    clock.advanceSeconds(4000)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
    idp.settings.quirks = {}
    const calls = idp.tokenRequests.length
    for (const seconds of [0, 3600]) {
      clock.advanceSeconds(seconds)
      t.is((await copy.clone().fetch('/api/auth/profile')).statusCode, 401)
    }
    t.is(idp.tokenRequests.length, calls)
  }
)

testWithRedis('the same callback at two replicas exchanges its code once, and both succeed', async t => {
  const { servers } = await startReplicated(t, 'single')
  const [one, two] = servers
  const { browser, idp } = one
  const callbackUrl = await startLogin(browser)
  const other = browser.clone()
  two.connect(other)
  const answers = await Promise.all([browser, other].map(tab => openCallback(tab, callbackUrl)))
  t.deepEqual(
    answers.map(({ statusCode }) => statusCode),
    [302, 302]
  )
  t.is(idp.tokenRequests.length, 1)
  for (const tab of [browser, other]) t.is((await tab.fetch('/api/auth/profile')).statusCode, 200)
})

testWithRedis('if a response with a refreshed session is lost, another server sends the session again', async t => {
  const { servers } = await startReplicated(t, 'dual')
  const [one, two] = servers
  const { browser, idp, clock } = one
  await signIn(browser)
  const old = browser.clone()
  clock.advanceSeconds(3600)
  await browser.fetch('/api/auth/token')
  await one.server.close()
  const after = idp.tokenRequests.length
  two.connect(old)
  const response = await old.fetch('/api/auth/token')
  t.is(response.statusCode, 200)
  t.true(response.setCookies.length > 0)
  t.is(idp.tokenRequests.length, after)
})

testWithRedis('/readyz reports which store is in use, and answers 200 while Redis is down', async t => {
  const redis = await startRedis(t)
  const { browser, logs } = await startTestServer(t, { mode: 'dual', overrides: { redisUrl: redis.url } })
  const store = async () => (await browser.get('/readyz')).json().store
  await eventually(async () => (await store()) === 'redis')
  await signIn(browser)
  await redis.kill()
  while ((await store()) !== 'unavailable') t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  const ready = await browser.get('/readyz')
  t.is(ready.statusCode, 200)
  t.deepEqual(ready.json(), { status: 'ready', store: 'unavailable' })
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
  await redis.restart()
  await eventually(() => logs.find(({ event }) => event === 'redis_back') !== undefined)
  t.is(await store(), 'redis')
})

testWithRedis('a server answers 503 instead of refreshing while Redis is down, and refreshes afterwards', async t => {
  const redis = await startRedis(t)
  const server = await startTestServer(t, { mode: 'dual', overrides: { redisUrl: redis.url } })
  const { browser, clock, idp } = server
  await eventually(async () => (await browser.get('/readyz')).json().store === 'redis')
  await signIn(browser)
  await redis.kill()
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  clock.advanceSeconds(3600)
  const calls = idp.tokenRequests.length
  const refused = await browser.fetch('/api/auth/token')
  t.is(refused.statusCode, 503)
  t.truthy(refused.headers['retry-after'])
  t.deepEqual(refused.setCookies, [])
  t.is(idp.tokenRequests.length, calls, 'no token was used without coordination')
  await redis.restart()
  let response = refused
  while (response.statusCode === 503) response = await browser.fetch('/api/auth/token')
  t.is(response.statusCode, 200)
  t.deepEqual(idp.reuses, [])
})

serialTestWithRedis('while Redis is down, valid tokens within the refresh margin are served at once', async t => {
  const redis = await startRedis(t)
  const overrides = { redisUrl: redis.url, refresh: { marginSeconds: 120, spreadSeconds: 0 } }
  const { browser, clock, idp } = await startTestServer(t, { mode: 'dual', overrides })
  await signIn(browser)
  await redis.kill()
  await eventually(async () => (await browser.get('/readyz')).json().store === 'unavailable')
  clock.advanceSeconds(3600 - 11)
  const calls = idp.tokenRequests.length
  const started = performance.now()
  for (let n = 0; n < 20; n++) t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  t.true(performance.now() - started < 4000)
  t.is(idp.tokenRequests.length, calls)
})

for (const [mode, calls] of [
  ['single', 2],
  ['dual', 4]
] as const) {
  testWithRedis(`${mode}: a request reads once from Redis and runs no script, and a refresh runs ${calls}`, async t => {
    const { servers, redis } = await startReplicated(t, mode)
    const [{ browser, clock }] = servers
    const path = mode === 'dual' ? '/api/auth/token' : '/api/auth/profile'
    await signIn(browser)
    await browser.fetch(path)
    const start = await commandsRun(redis)
    for (let n = 0; n < 5; n++) t.is((await browser.fetch(path)).statusCode, 200)
    t.deepEqual(difference(await commandsRun(redis), start), { reads: 5, scripts: 0 })

    clock.advanceSeconds(3600)
    const before = await commandsRun(redis)
    t.is((await browser.fetch(path)).statusCode, 200)
    t.deepEqual(difference(await commandsRun(redis), before), { reads: 1, scripts: calls })

    const after = await commandsRun(redis)
    t.is((await browser.fetch(path)).statusCode, 200)
    t.deepEqual(difference(await commandsRun(redis), after), { reads: 1, scripts: 0 }, 'nothing in the background')
  })
}

testWithRedis('a session in Redis that cannot be read is answered with 503 and one error in the log', async t => {
  const { servers, redis } = await startReplicated(t, 'dual')
  const [one, two] = servers
  const { browser, clock, idp } = one
  await signIn(browser)
  const old = browser.clone()
  clock.advanceSeconds(3600)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  const calls = idp.tokenRequests.length
  const [key = ''] = await redis.admin.keys('*:session:*')
  await redis.admin.hset(key, 'e', 'nonsense')
  two.connect(old)
  const response = await old.fetch('/api/auth/token')
  t.is(response.statusCode, 503)
  t.truthy(response.headers['retry-after'])
  t.deepEqual(response.setCookies, [])
  t.is(idp.tokenRequests.length, calls)
  t.is(two.logs.entries.filter(({ event }) => event === 'stored_data_unreadable').length, 1)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 503, 'a logout could be hidden in it')
})
