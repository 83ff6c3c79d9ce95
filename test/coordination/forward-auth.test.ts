// Forward-auth over replicas that share a Redis: the browser keeps its first cookie all day.
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
  testWithRedis(`${mode}: 24 refreshes by two replicas and a restart lose no session and keep one result`, async t => {
    const redis = await startRedis(t)
    const clock = createClock()
    const idp = await createHostileIdp(t, { now: clock.now, callbackUrl: defaultCallbackUrl })
    const start = async () => {
      const coordination = await startReplica(t, redis.url, { now: clock.now })
      return startTestServer(t, { mode, idp, clock, overrides: { forwardAuth: { port: 0 } }, parts: { coordination } })
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

    // The results between the first and the last one are about to expire.
    const keys = (await redis.admin.keys('*refresh:*:result')).toSorted()
    const lifetimes = await Promise.all(keys.map(key => redis.admin.pttl(key)))
    t.is(lifetimes.filter(ms => ms > 60_000).length, 1)

    two.connect(browser)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.is(idp.tokenRequests.length - before, 24 * (mode === 'dual' ? 2 : 1), 'the browser is given the kept session')
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    const afterwards = await Promise.all(keys.map(key => redis.admin.pttl(key)))
    t.is(afterwards.filter(ms => ms > 60_000).length, 0, 'the browser has its new cookie')
  })
}

for (const mode of modes) {
  testWithRedis(`${mode}: a process that stands still just before its call to the provider loses nobody`, async t => {
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
    // The first refresh leaves a kept result, which the next one has to check.
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

test('the sizes of four kinds of entries are documented', t => t.is(documentedSizes.length, 4))

for (const [session = '', , inRedis = ''] of documentedSizes) {
  testWithRedis(`an entry in Redis has the size that is documented: ${session}`, async t => {
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
    // Other versions of Redis and of its memory allocator need a little more or less.
    const ratio = bytes / 1000 / Number.parseFloat(inRedis)
    t.true(ratio > 0.75 && ratio < 1.25, `${bytes} bytes, documented as ${inRedis}`)
  })
}

testWithRedis('a result that is published again after Redis was emptied does not replace a newer one', async t => {
  const redis = await startRedis(t)
  const [one, two] = [await startReplica(t, redis.url), await startReplica(t, redis.url)]
  await one.once('refresh:key', async () => ({ value: { n: 1 }, keepMs: 60_000, hasTokens: true }))
  await two.update('refresh:key', () => ({ n: 2 }))
  t.deepEqual(await one.peek('refresh:key'), { n: 2 })
  await redis.admin.flushall()
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  // Each replica writes what it holds as soon as it is connected again; which of them is first does not matter.
  for (const replica of [one, two]) {
    await eventually(async () => JSON.stringify(await replica.peek('refresh:key')) === '{"n":2}')
  }
  t.deepEqual(await one.peek('refresh:key'), { n: 2 })
})
