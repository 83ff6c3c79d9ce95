// Several servers as replicas of one deployment, with one provider and one Redis. The requests of a browser go to different
// replicas.
import { setTimeout as pause } from 'node:timers/promises'
import type { openRedisClient } from '#src/sessions/redis/redis-client.js'
import type { Browser, BrowserResponse } from '../helpers/browser.js'
import { eventually } from '../helpers/eventually.js'
import { modes } from '../helpers/modes.js'
import {
  type RedisServer,
  serialTestWithRedis as serialTest,
  startRedis,
  testWithRedis as test
} from '../helpers/redis.js'
import { openRedisAt, PATIENT } from '../helpers/redis-clock.js'
import { commandsRun, difference } from '../helpers/redis-commands.js'
import { openCallback, signIn, startLogin, startTestServer } from '../helpers/server.js'
import { allRevoked, copyAt, mayComeBack, profileStatus, startDeployment, startServers } from './deployment.js'

const pathOf = { single: '/api/auth/profile', dual: '/api/auth/token' }

for (const [mode, calls] of [
  ['single', 1],
  ['dual', 2]
] as const) {
  const path = pathOf[mode]

  // Serial, because these requests keep the process busy, and a login in another test would get its reply of Redis too late.
  serialTest(`${mode}: a thousand requests to four replicas with one session cause one refresh`, async t => {
    const { servers: pair, start, idp, clock } = await startServers(t, { mode })
    const servers = [...pair, await start(), await start()]
    const { browser } = pair[0]
    await signIn(browser)
    clock.advanceSeconds(3600)
    const before = idp.tokenRequests.length
    const tabs = Array.from({ length: 10 }, () => servers.map(server => copyAt(server, browser))).flat()
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
    t.log(`responded after ${times[0]} to ${times.at(-1)} ms, half of them by ${times[500]} ms`)
  })
}

for (const [mode, store] of [
  ['single', 'cookie'],
  ['dual', 'cookie'],
  ['single', 'redis']
] as const) {
  const path = pathOf[mode]

  test(`${mode}, session.store: ${store}: a refresh and a logout at one replica are known to another, for the old and the new cookie`, async t => {
    const { servers, idp, clock, redis } = await startServers(t, { mode, settings: { session: { store } } })
    const [one, two] = servers
    const { browser } = one
    await signIn(browser)
    const old = browser.clone()
    clock.advanceSeconds(3600)
    t.is((await browser.fetch(path)).statusCode, 200)
    const after = idp.tokenRequests.length
    const fresh = copyAt(two, browser)
    two.connect(old)
    t.is((await fresh.fetch(path)).statusCode, 200)
    const response = await old.fetch(path)
    t.is(response.statusCode, 200)
    t.true(response.setCookies.length > 0, 'a browser that lost the first response gets the session again')
    t.is(idp.tokenRequests.length, after)
    await browser.navigate('/api/auth/logout')
    for (const tab of [fresh, old]) {
      for (const url of [path, '/api/auth/profile']) t.is((await tab.clone().fetch(url)).statusCode, 401)
    }
    const [name = ''] = await redis.admin.keys('*:session:*')
    t.is(await redis.admin.hget(name, 'r'), null)
    await allRevoked(idp)
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}, session.store: ${store}: a new login in a browser with an old copy of the cookie ends the session of every copy`, async t => {
    const { servers, clock } = await startServers(t, { mode, settings: { session: { store } } })
    const [one, two] = servers
    await signIn(one.browser)
    const copy = one.browser.clone()
    clock.advanceSeconds(3600)
    t.is((await one.browser.fetch(path)).statusCode, 200)
    two.connect(copy)
    await signIn(copy)
    t.is((await copy.fetch(path)).statusCode, 200)
    t.is((await one.browser.fetch(path)).statusCode, 401)
  })
}

test('a logout during a refresh at another replica ends the session and revokes the new token', async t => {
  const { servers, idp, clock } = await startServers(t)
  const [{ browser }, two] = servers
  await signIn(browser)
  const other = copyAt(two, browser)
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const refresh = browser.fetch('/api/auth/profile')
  await hold.arrived()
  t.is((await other.navigate('/api/auth/logout')).statusCode, 302)
  hold.release()
  t.is((await refresh).statusCode, 401)
  await allRevoked(idp)
  t.is(await profileStatus(other), 401)
})

for (const revoke of [true, false]) {
  test(`with logout.revoke: ${revoke}, a logout at another replica ${revoke ? 'revokes' : 'does not revoke'} a new refresh token that could not be stored`, async t => {
    const { start, clock, idp } = await startDeployment(t, { settings: { logout: { revoke } } })
    let isFull = false
    const open: typeof openRedisClient = async (...parameters) => {
      const client = await openRedisAt(clock.now)(...parameters)
      const { commands } = client
      const evalsha = ((...given: Parameters<typeof commands.evalsha>) =>
        isFull
          ? Promise.reject(new Error("OOM command not allowed when used memory > 'maxmemory'."))
          : commands.evalsha(...given)) as typeof commands.evalsha
      return { ...client, commands: { ...commands, evalsha } }
    }
    const one = await start({}, { open, timing: PATIENT })
    const two = await start()
    await signIn(one.browser)
    const other = copyAt(two, one.browser)
    clock.advanceSeconds(3600)
    const hold = idp.hold('token')
    const refresh = one.browser.fetch('/api/auth/profile')
    await hold.arrived()
    isFull = true
    hold.release()
    t.is((await refresh).statusCode, 200)
    const unsaved = idp.issued.refreshTokens.at(-1)?.value ?? ''
    t.is((await other.navigate('/api/auth/logout')).statusCode, 302)
    await eventually(async () => (await profileStatus(one.browser)) === 401)
    if (revoke) await eventually(() => idp.revoked.includes(unsaved))
    else t.deepEqual(idp.requestsTo('revoke'), [])
  })
}

test('the same callback at two replicas exchanges its code once, and both succeed', async t => {
  const { servers, idp } = await startServers(t)
  const [{ browser }, two] = servers
  const callbackUrl = await startLogin(browser)
  const other = copyAt(two, browser)
  const answers = await Promise.all([browser, other].map(tab => openCallback(tab, callbackUrl)))
  for (const { statusCode } of answers) t.is(statusCode, 302)
  t.is(idp.tokenRequests.length, 1)
  for (const tab of [browser, other]) t.is(await profileStatus(tab), 200)
})

test('/readyz reports whether Redis can be used, and while Redis is down, a server refreshes no session', async t => {
  const redis = await startRedis(t)
  const server = await startTestServer(t, { mode: 'dual', settings: { redis: { url: redis.url } } })
  const { browser, clock, idp, logs } = server
  const state = async () => (await browser.get('/readyz')).json().redis
  await eventually(async () => (await state()) === 'up')
  await signIn(browser)
  const leaving = server.newBrowser()
  await signIn(leaving)
  await redis.kill()
  while ((await state()) !== 'down') t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  const ready = await browser.get('/readyz')
  t.is(ready.statusCode, 200)
  t.deepEqual(ready.json(), { status: 'ready', redis: 'down' })
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  t.is((await leaving.navigate('/api/auth/logout')).statusCode, 302)
  clock.advanceSeconds(3600)
  const calls = idp.tokenRequests.length
  const refused = await browser.fetch('/api/auth/token')
  mayComeBack(t, refused)
  t.is(idp.tokenRequests.length, calls, 'no token was used without coordination')
  await redis.restart()
  await eventually(() => logs.first('redis_available') !== undefined)
  t.is(await state(), 'up')
  await eventually(async () => (await browser.fetch('/api/auth/token')).statusCode === 200)
  t.deepEqual(idp.reuses, [])
})

for (const mode of modes) {
  serialTest(`${mode}: while Redis is down, valid tokens within the refresh margin are served immediately`, async t => {
    const redis = await startRedis(t)
    const settings = { redis: { url: redis.url }, refresh: { beforeExpiry: 120, jitter: 0 } }
    const { browser, clock, idp } = await startTestServer(t, { mode, settings })
    await signIn(browser)
    await redis.kill()
    await eventually(async () => (await browser.get('/readyz')).json().redis === 'down')
    clock.advanceSeconds(3600 - 11)
    const calls = idp.tokenRequests.length
    const started = performance.now()
    for (let n = 0; n < 20; n++) t.is((await browser.fetch(pathOf[mode])).statusCode, 200)
    t.true(performance.now() - started < 4000)
    t.is(idp.tokenRequests.length, calls)
  })
}

/** Returns the commands that Redis has run, when the servers have ended what they do after their start. */
async function commandsWhenIdle(redis: RedisServer) {
  for (let before = await commandsRun(redis); ; ) {
    await pause(300)
    const now = await commandsRun(redis)
    if (now.scripts === before.scripts && now.reads === before.reads) return now
    before = now
  }
}

for (const [mode, store, calls] of [
  ['single', 'cookie', 2],
  ['dual', 'cookie', 4],
  ['single', 'redis', 2]
] as const) {
  test(`${mode}, session.store: ${store}: a request reads once and runs no script, and a refresh runs ${calls}`, async t => {
    const { servers, redis, clock } = await startServers(t, { mode, settings: { session: { store } } })
    const [{ browser }] = servers
    const path = pathOf[mode]
    await signIn(browser)
    await browser.fetch(path)
    const start = await commandsWhenIdle(redis)
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
