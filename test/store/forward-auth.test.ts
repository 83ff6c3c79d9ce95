// Forward-auth with several replicas that share a Redis. A gateway asks a replica about each request of a browser, and the
// browser keeps its first session cookie all day, because it never gets the new cookie of a refresh.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import test from 'ava'
import { createClock } from '../helpers/clock.js'
import { defaultCallbackUrl } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { askAbout } from '../helpers/gateway.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { tableRows } from '../helpers/markdown.js'
import { modes } from '../helpers/modes.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { readText } from '../helpers/repository.js'
import { signIn, startTestServer } from '../helpers/server.js'
import { startReplica } from './replicas.js'
import { SHORT_LEASE } from './work.js'

for (const mode of modes) {
  testWithRedis(`${mode}: two replicas refresh a session 24 times and keep one result in Redis`, async t => {
    const redis = await startRedis(t)
    const clock = createClock()
    const idp = await createHostileIdp(t, { now: clock.now, callbackUrl: defaultCallbackUrl })
    const start = async () => {
      const coordination = await startReplica(t, redis.url, { now: clock.now })
      return startTestServer(t, {
        mode,
        idp,
        clock,
        overrides: { forwardAuth: { port: 0 } },
        parts: { coordination }
      })
    }
    let [one, two] = [await start(), await start()]
    await signIn(one.browser)
    const { browser } = one
    const before = idp.tokenRequests.length
    for (let hour = 1; hour <= 24; hour++) {
      clock.advance(3_599_500)
      if (hour === 12) {
        await one.server.close()
        one = await start()
      }
      const ports = [one.server.forwardAuthPort, two.server.forwardAuthPort] as number[]
      if (hour % 2 === 0) ports.reverse()
      const asked = [...ports, ...ports].map(port => askAbout(port, browser))
      const answers = await Promise.all(asked)
      t.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
      t.is(new Set(answers.map(({ authorization }) => authorization)).size, 1)
    }
    t.is(idp.tokenRequests.length - before, 24 * (mode === 'dual' ? 2 : 1))
    t.deepEqual(idp.reuses, [])

    // Only the newest result still lives for more than a minute.
    const keys = (await redis.admin.keys('*refresh:*:result')).toSorted()
    const lifetimes = await Promise.all(keys.map(key => redis.admin.pttl(key)))
    t.is(lifetimes.filter(ms => ms > 60_000).length, 1)

    two.connect(browser)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.is(
      idp.tokenRequests.length - before,
      24 * (mode === 'dual' ? 2 : 1),
      'the browser gets the kept result without another provider call'
    )
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    const afterwards = await Promise.all(keys.map(key => redis.admin.pttl(key)))
    t.is(
      afterwards.filter(ms => ms > 60_000).length,
      0,
      'when the browser has its new cookie, the newest result lives for less than a minute too'
    )
  })
}

for (const mode of modes) {
  testWithRedis(`${mode}: if a process stalls before a refresh, another process refreshes the session`, async t => {
    const redis = await startRedis(t)
    const clock = createClock()
    const idp = await createHostileIdp(t, { now: clock.now, callbackUrl: defaultCallbackUrl })
    const coordination = await startReplica(t, redis.url, { now: clock.now, timing: SHORT_LEASE })
    const overrides = { forwardAuth: { port: 0 } }
    const { server, browser, config } = await startTestServer(t, {
      mode,
      idp,
      clock,
      overrides,
      parts: { coordination }
    })
    const port = server.forwardAuthPort as number
    await signIn(browser)
    // After the first refresh there is a kept result, and the next refresh has to check that result.
    clock.advanceSeconds(3600)
    t.is((await askAbout(port, browser)).status, 200)
    clock.advanceSeconds(3600)
    const before = idp.tokenRequests.length

    const script = new URL('stalled-server.js', import.meta.url)
    const stalled = fork(script, [redis.url, JSON.stringify(config), String(clock.now())], { silent: true })
    t.teardown(() => stalled.kill('SIGKILL'))
    const [{ forwardAuthPort }] = (await once(stalled, 'message')) as [{ forwardAuthPort: number }]
    const checked = once(stalled, 'message')
    const late = askAbout(forwardAuthPort, browser)
    t.deepEqual(await checked, ['checked', undefined])
    stalled.kill('SIGSTOP')

    t.is((await askAbout(port, browser)).status, 200, 'the other replica takes the lock over')
    const calls = idp.tokenRequests.length - before
    stalled.kill('SIGCONT')
    stalled.send('go on')
    t.is((await late).status, 503)
    t.is(idp.tokenRequests.length - before, calls)
    t.deepEqual(idp.reuses, [])
    t.is((await askAbout(port, browser)).status, 200)
  })
}

const documentedSizes = tableRows(readText('docs/forward-auth.md')).filter(([, cookies]) =>
  / in (one|two)$/.test(cookies ?? '')
)

test('docs/forward-auth.md documents the size of four kinds of entries', t => t.is(documentedSizes.length, 4))

for (const [session = '', , inRedis = ''] of documentedSizes) {
  testWithRedis(`an entry in Redis has the documented size: ${session}`, async t => {
    const redis = await startRedis(t)
    const coordination = await startReplica(t, redis.url)
    const mode = session.startsWith('dual') ? 'dual' : 'single'
    const parts = { coordination, now: Date.now }
    const { server, browser, idp } = await startTestServer(t, { mode, overrides: { forwardAuth: { port: 0 } }, parts })
    idp.settings.accessTokenLength = Number(/of ([\d,]+) characters/.exec(session)?.[1]?.replace(',', '') ?? 1000)
    idp.settings.accessTokenLifetimeSeconds = 0.001
    await signIn(browser)
    await askAbout(server.forwardAuthPort as number, browser)
    const [key = ''] = await redis.admin.keys('*refresh:*:result')
    const bytes = Number(await redis.admin.call('MEMORY', 'USAGE', key))
    // Other versions of Redis and its memory allocator need slightly different amounts.
    const ratio = bytes / 1000 / Number.parseFloat(inRedis)
    t.true(ratio > 0.75 && ratio < 1.25, `${bytes} bytes, documented as ${inRedis}`)
  })
}

testWithRedis('an old result that is published again after a data loss does not replace a newer one', async t => {
  const redis = await startRedis(t)
  const [one, two] = [await startReplica(t, redis.url), await startReplica(t, redis.url)]
  await one.once('refresh:key', async () => ({ value: { n: 1 }, keepMs: 60_000, hasTokens: true }))
  await two.update('refresh:key', () => ({ n: 2 }))
  t.deepEqual(await one.peek('refresh:key'), { n: 2 })
  await redis.admin.flushall()
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  // Each replica publishes its results when it has reconnected. The order of the replicas does not matter.
  for (const replica of [one, two]) {
    await eventually(async () => JSON.stringify(await replica.peek('refresh:key')) === '{"n":2}')
  }
  t.deepEqual(await one.peek('refresh:key'), { n: 2 })
})
