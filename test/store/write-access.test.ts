// What somebody can and cannot do who may write the keys of the servers in Redis, but does not know the session secret.
// SECURITY.md has the list.
import type { ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { signIn, startTestServer } from '../helpers/server.js'
import { startReplica } from './replicas.js'

/** Starts two servers, signs a browser in at the first one, and refreshes its session there. */
async function setUp(t: ExecutionContext) {
  const redis = await startRedis(t)
  const one = await startTestServer(t, { mode: 'dual', parts: { store: await startReplica(t, redis.url) } })
  const { idp, clock } = one
  const store = await startReplica(t, redis.url)
  const two = await startTestServer(t, { mode: 'dual', idp, clock, parts: { store } })
  const { browser } = one
  await signIn(browser)
  const old = browser.clone()
  clock.advanceSeconds(3600)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  for (const tab of [browser, old]) two.connect(tab)
  const entry = (await redis.admin.keys('*{*}')).find(key => !key.includes('nobody')) ?? ''
  return { redis, one, two, browser, old, idp, clock, entry, record: `${entry}:record` }
}

testWithRedis('a forged lock delays refreshes, and ends after 65 seconds', async t => {
  const { redis, browser, clock, idp, entry } = await setUp(t)
  clock.advanceSeconds(3600)
  const calls = idp.tokenRequests.length
  await redis.admin.hset(entry, 'owner', 'somebody', 'owned', 2 ** 50)
  const response = await browser.fetch('/api/auth/token')
  t.is(response.statusCode, 503)
  t.deepEqual(response.setCookies, [])
  t.is(idp.tokenRequests.length, calls)
  const [seconds = 0] = (await redis.admin.time()).map(Number)
  t.true(Number(await redis.admin.hget(entry, 'owned')) <= (seconds + 66) * 1000)
})

testWithRedis('a raised revision makes the cookie count as an old copy, and does not remove it', async t => {
  const { redis, browser, idp, clock, entry, record } = await setUp(t)
  await redis.admin.hset(entry, 'rev', 1000, 'seen', 1)
  await redis.admin.del(record)
  const calls = idp.tokenRequests.length
  for (const seconds of [0, 3600]) {
    clock.advanceSeconds(seconds)
    const response = await browser.fetch('/api/auth/token')
    t.is(response.statusCode, 401)
    t.deepEqual(response.setCookies, [])
  }
  t.is(idp.tokenRequests.length, calls)
})

for (const state of ['out', 'ended']) {
  testWithRedis(`an entry whose state is changed to ${state} signs the person out`, async t => {
    const { redis, browser, entry } = await setUp(t)
    await redis.admin.hset(entry, 'state', state)
    t.is((await browser.fetch('/api/auth/token')).statusCode, 401)
  })
}

testWithRedis('a session of another person in Redis is not accepted', async t => {
  const { redis, two, old, idp, record } = await setUp(t)
  const other = two.newBrowser()
  await signIn(other)
  const records = await redis.admin.keys('*:record')
  const text = (await redis.admin.get(records.find(key => key !== record) ?? '')) ?? ''
  t.true(text.length > 100)
  await redis.admin.set(record, text, 'KEEPTTL')
  const calls = idp.tokenRequests.length
  t.is((await old.fetch('/api/auth/token')).statusCode, 503)
  t.is(idp.tokenRequests.length, calls)
})

testWithRedis('an entry of the wrong type is answered with 503', async t => {
  const { redis, browser, entry } = await setUp(t)
  await redis.admin.set(entry, 'text')
  t.is((await browser.fetch('/api/auth/token')).statusCode, 503)
})

testWithRedis(
  'after the entry of a logged-out session was deleted, a process that remembers the logout refuses it',
  async t => {
    const { redis, one, two, browser, old, entry } = await setUp(t)
    one.connect(browser)
    await browser.navigate('/api/auth/logout')
    await eventually(async () => (await old.fetch('/api/auth/profile')).statusCode === 401)
    await redis.admin.del(entry)
    for (const server of [one, two]) {
      server.connect(old)
      t.is((await old.fetch('/api/auth/token')).statusCode, 401)
    }
  }
)
