// Several servers as replicas of one deployment, with one provider and one Redis. The requests of a browser go to different
// replicas.
import { setTimeout as pause } from 'node:timers/promises'
import type { openRedisClient } from '#src/sessions/redis/redis-client.js'
import type { Browser, BrowserResponse } from '../helpers/browser.js'
import { eventually } from '../helpers/eventually.js'
import { type RedisServer, serialTestWithRedis as serialTest, testWithRedis as test } from '../helpers/redis.js'
import { openRedisAt, PATIENT } from '../helpers/redis-clock.js'
import { commandsRun, difference } from '../helpers/redis-commands.js'
import { readText } from '../helpers/repository.js'
import { signIn } from '../helpers/server.js'
import { allRevoked, copyAt, profileStatus, startDeployment, startServers } from './deployment.js'

const pathOf = { single: '/api/auth/profile', dual: '/api/auth/token' }

// Serial, because these requests keep the process busy, and a login in another test would get its reply of Redis too late.
serialTest(
  'dual: a thousand requests to four replicas with one session cause one refresh, and get its token',
  async t => {
    const { servers: pair, start, idp, clock } = await startServers(t, { mode: 'dual' })
    const servers = [...pair, await start(), await start()]
    const { browser } = pair[0]
    await signIn(browser)
    clock.advanceSeconds(3600)
    const before = idp.tokenRequests.length
    const tabs = Array.from({ length: 10 }, () => servers.map(server => copyAt(server, browser))).flat()
    // If a slow machine delays a reply of Redis or the provider beyond the time limit, the response is 503 or 504, and a
    // client tries again.
    const ask = async (tab: Browser): Promise<BrowserResponse> => {
      const response = await tab.fetch('/api/auth/token')
      return response.statusCode >= 503 ? ask(tab) : response
    }
    const started = performance.now()
    const asked = tabs.flatMap(tab =>
      Array.from({ length: 25 }, async () => ({ response: await ask(tab), ms: performance.now() - started }))
    )
    const answers = await Promise.all(asked)
    t.is(answers.filter(({ response }) => response.statusCode === 200).length, 1000)
    t.is(new Set(answers.map(({ response }) => response.text())).size, 1)
    t.is(idp.tokenRequests.length - before, 2)
    t.deepEqual(idp.reuses, [])
    const times = answers.map(({ ms }) => Math.round(ms)).sort((a, b) => a - b)
    t.log(`responded after ${times[0]} to ${times.at(-1)} ms, half of them by ${times[500]} ms`)
  }
)

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
    const [name = ''] = await redis.admin.keys('*:session:*')
    t.regex(String(await redis.admin.hget(name, 'r')), /^[\w-]{500,}$/)
    await browser.navigate('/api/auth/logout')
    for (const tab of [fresh, old]) {
      for (const url of [path, '/api/auth/profile']) t.is((await tab.clone().fetch(url)).statusCode, 401)
    }
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

/** Returns the commands that Redis has run, when both servers have ended what they do after their start. */
async function commandsWhenIdle(redis: RedisServer) {
  const clients = async () => String(await redis.admin.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
  await eventually(async () => (await clients()).split(' sub=1 ').length > 2)
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
  // Serial, because a process that is busy for a second asks for another lease.
  serialTest(`${mode}, session.store: ${store}: a request is one read, and a refresh ${calls} scripts`, async t => {
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

const [, documentedKilobytes = ''] =
  /session in cookies of 3 kB needs ([\d.]+) kB/.exec(readText('docs/run/redis.md')) ?? []

test('a session in cookies has the size in Redis that docs/run/redis.md documents', async t => {
  const { redis, idp, start } = await startDeployment(t, { mode: 'dual' })
  const { browser } = await start()
  // The platform's tokens have about this length.
  idp.settings.accessTokenLength = 1000
  idp.settings.accessTokenLifetimeSeconds = 0.001
  await signIn(browser)
  await browser.fetch('/api/auth/token')
  const keys = await redis.admin.keys('*:session:*')
  t.is(keys.length, 1)
  const sizes = await Promise.all(keys.map(key => redis.admin.call('MEMORY', 'USAGE', key)))
  const bytes = sizes.reduce((sum: number, size) => sum + Number(size), 0)
  // Other versions of Redis and its memory allocator need slightly different amounts.
  const ratio = bytes / 1000 / Number(documentedKilobytes)
  t.true(ratio > 0.75 && ratio < 1.25, `${bytes} bytes, documented as ${documentedKilobytes} kB`)
})
