// An attacker may write the keys of the servers in Redis, but does not know the session secret. SECURITY.md lists what
// this attacker can and cannot do.
import type { ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { testWithRedis as test } from '../helpers/redis.js'
import { signIn } from '../helpers/server.js'
import { copyAt, mayComeBack, profileStatus, startServers } from './deployment.js'

/** Starts two servers, signs a browser in at the first one, and refreshes its session there. */
async function setUp(t: ExecutionContext) {
  const { redis, idp, clock, servers } = await startServers(t, { mode: 'dual' })
  const [one, two] = servers
  const { browser } = one
  await signIn(browser)
  const old = browser.clone()
  const [key = ''] = await redis.admin.keys('*:session:*')
  const before = await redis.admin.hgetall(key)
  clock.advanceSeconds(3600)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  for (const tab of [browser, old]) two.connect(tab)
  return { redis, one, two, browser, old, idp, clock, key, before }
}

for (const field of ['e', 'r']) {
  test(`an invented string in the field ${field} causes a 503 response and one error in the log, and no token is sent`, async t => {
    const { redis, two, browser, old, idp, clock, key } = await setUp(t)
    await redis.admin.hset(key, field, 'nonsense')
    mayComeBack(t, await old.fetch('/api/auth/token'))
    t.is(two.logs.all('stored_data_unreadable').length, 1)
    clock.advanceSeconds(3600)
    const calls = idp.tokenRequests.length
    for (const text of ['', 'somebody', JSON.stringify({ rev: 1000, hasRecord: true }), 'A'.repeat(300)]) {
      await redis.admin.hset(key, field, text)
      mayComeBack(t, await old.fetch('/api/auth/token'))
    }
    if (field === 'e') t.is((await browser.fetch('/api/auth/token')).statusCode, 503, 'a logout could be hidden in it')
    t.is(idp.tokenRequests.length, calls)
    await redis.admin.del(key)
    await eventually(async () => (await browser.fetch('/api/auth/token')).statusCode === 200)
    t.deepEqual(idp.reuses, [])
  })
}

test('an earlier state that is written back is repaired, and no old refresh token is sent', async t => {
  const { redis, browser, idp, clock, key, before } = await setUp(t)
  await redis.admin.del(key)
  await redis.admin.hset(key, before)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  clock.advanceSeconds(3600)
  await eventually(async () => (await browser.fetch('/api/auth/token')).statusCode === 200)
  t.deepEqual(idp.reuses, [])
})

test('a key of the wrong type causes a 503 response, and a logout is remembered', async t => {
  const { redis, browser, key } = await setUp(t)
  await redis.admin.del(key)
  await redis.admin.set(key, 'text')
  t.is((await browser.fetch('/api/auth/token')).statusCode, 503)
  const copy = browser.clone()
  t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
  t.is((await copy.fetch('/api/auth/token')).statusCode, 401)
})

test('after the cell of a logged-out session was deleted, a process that remembers the logout refuses it', async t => {
  const { redis, one, two, browser, old, key } = await setUp(t)
  one.connect(browser)
  await browser.navigate('/api/auth/logout')
  await eventually(async () => (await profileStatus(old.clone())) === 401)
  await redis.admin.del(key)
  for (const server of [one, two]) t.is((await copyAt(server, old).fetch('/api/auth/token')).statusCode, 401)
})
