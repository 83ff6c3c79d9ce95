// Forward-auth with several replicas that share a Redis. A gateway asks a replica about each request of a browser, and the
// browser keeps its first session cookie all day, because it never gets the new cookie of a refresh.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { askAbout } from '../helpers/gateway.js'
import { modes } from '../helpers/modes.js'
import { testWithRedis as test } from '../helpers/redis.js'
import { readText } from '../helpers/repository.js'
import { signIn } from '../helpers/server.js'
import { profileStatus, startDeployment } from './deployment.js'

for (const [mode, store] of [
  ['single', 'cookie'],
  ['dual', 'cookie'],
  ['single', 'redis']
] as const) {
  test(`${mode}, session.store: ${store}: two replicas refresh a session 24 times and keep one session in Redis`, async t => {
    const settings = { forwardAuth: { address: '127.0.0.1:0' }, session: { store } }
    const { redis, clock, idp, start } = await startDeployment(t, { mode, settings })
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
      const answers = await Promise.all([...ports, ...ports].map(port => askAbout(port, browser)))
      for (const { status } of answers) t.is(status, 200)
      t.is(new Set(answers.map(({ authorization }) => authorization)).size, 1)
    }
    const calls = 24 * (mode === 'dual' ? 2 : 1)
    t.is(idp.tokenRequests.length - before, calls)
    t.deepEqual(idp.reuses, [])

    const sessions = await redis.admin.keys('*:session:*')
    t.is(sessions.length, 1)
    t.is(await redis.admin.hexists(sessions[0] as string, 'r'), 1, 'the record stays until a newer one replaces it')
    t.true((await redis.admin.pttl(sessions[0] as string)) > 60_000)

    two.connect(browser)
    for (let n = 0; n < 2; n++) t.is(await profileStatus(browser), 200)
    t.is(idp.tokenRequests.length - before, calls, 'the browser gets the stored session')
  })
}

for (const mode of modes) {
  test(`${mode}: if a process stalls before a refresh, another process refreshes the session`, async t => {
    const deployment = await startDeployment(t, { mode, settings: { forwardAuth: { address: '127.0.0.1:0' } } })
    const { redis, clock, idp } = deployment
    const { server, browser, config } = await deployment.start()
    const port = server.forwardAuthPort as number
    await signIn(browser)
    // After the first refresh, the store has a newer session than the browser.
    clock.advanceSeconds(3600)
    t.is((await askAbout(port, browser)).status, 200)
    clock.advanceSeconds(3600)
    const before = idp.tokenRequests.length

    const script = new URL('stalled-server.js', import.meta.url)
    const stalled = fork(script, [redis.url, JSON.stringify(config), String(clock.now())], { silent: true })
    t.teardown(() => stalled.kill('SIGKILL'))
    const [{ forwardAuthPort }] = (await once(stalled, 'message')) as [{ forwardAuthPort: number }]
    const locked = once(stalled, 'message')
    const late = askAbout(forwardAuthPort, browser)
    t.deepEqual(await locked, ['leased', undefined])
    stalled.kill('SIGSTOP')

    // The lease of the stalled process ends.
    clock.advanceSeconds(66)
    t.is((await askAbout(port, browser)).status, 200, 'the other replica gets the lease')
    const calls = idp.tokenRequests.length - before
    stalled.kill('SIGCONT')
    stalled.send(clock.now())
    t.is((await late).status, 503, 'the stalled process does not use a lease that may have ended')
    t.is((await askAbout(forwardAuthPort, browser)).status, 200, 'it gets the session of the other replica')
    t.is(idp.tokenRequests.length - before, calls)
    t.deepEqual(idp.reuses, [])
    t.is((await askAbout(port, browser)).status, 200)
  })
}

const [, documentedKilobytes = ''] =
  /session in cookies of 3 kB needs ([\d.]+) kB/.exec(readText('docs/run/redis.md')) ?? []

test('a session in cookies has the size in Redis that docs/run/redis.md documents', async t => {
  const deployment = await startDeployment(t, { mode: 'dual', settings: { forwardAuth: { address: '127.0.0.1:0' } } })
  const { redis, idp } = deployment
  const { server, browser } = await deployment.start()
  // The platform's tokens have about this length.
  idp.settings.accessTokenLength = 1000
  idp.settings.accessTokenLifetimeSeconds = 0.001
  await signIn(browser)
  await askAbout(server.forwardAuthPort as number, browser)
  const keys = await redis.admin.keys('*:session:*')
  t.is(keys.length, 1)
  const sizes = await Promise.all(keys.map(key => redis.admin.call('MEMORY', 'USAGE', key)))
  const bytes = sizes.reduce((sum: number, size) => sum + Number(size), 0)
  // Other versions of Redis and its memory allocator need slightly different amounts.
  const ratio = bytes / 1000 / Number(documentedKilobytes)
  t.true(ratio > 0.75 && ratio < 1.25, `${bytes} bytes, documented as ${documentedKilobytes} kB`)
})
