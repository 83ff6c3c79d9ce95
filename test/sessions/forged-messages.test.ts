// An attacker who may publish in the shared Redis, but lacks the session secret, sends messages to the replicas.
import type { ExecutionContext } from 'ava'
import { createKeyring } from '#src/cookie/keyring.js'
import type { Browser } from '../helpers/browser.js'
import { eventually } from '../helpers/eventually.js'
import { faults } from '../helpers/hostile-idp/index.js'
import { type RedisServer, testWithRedis as test } from '../helpers/redis.js'
import { openCallback, signIn, startLogin, type TestServer } from '../helpers/server.js'
import { copyAt, profileStatus, startDeployment } from './deployment.js'

const FLOOD = 30_000

type Replicated = Awaited<ReturnType<typeof startReplicated>>

const OLD = 'the-old-session-secret-vX3qL9pTz7RmYw2K'
const NEW = 'the-new-session-secret-Kw2YmR7zTp9Lq3Xv'

/** Starts two replicas of one deployment. */
async function startReplicated(t: ExecutionContext, { rotates = false } = {}) {
  const { redis, start } = await startDeployment(t, { logLevel: 'info' })
  const one = await start({ session: { secret: rotates ? NEW : OLD, previousSecrets: rotates ? [OLD] : [] } })
  const two = await start({ session: { secret: OLD } })
  for (const { browser } of [one, two]) {
    await eventually(async () => (await browser.get('/readyz')).json().redis === 'up')
  }
  await eventually(async () => (await redis.admin.pubsub('NUMSUB', ...(await channelsOf(redis))))[1] === 2)
  return { one, two, redis }
}

/** All channels to which the replicas listen. */
async function channelsOf({ admin }: RedisServer): Promise<string[]> {
  return (await admin.pubsub('CHANNELS', '*')) as string[]
}

/** Publishes each message in every channel of the deployment. */
async function publish(redis: RedisServer, messages: readonly string[]): Promise<void> {
  const channels = await channelsOf(redis)
  for (let start = 0; start < messages.length; start += 1000) {
    const pipeline = redis.admin.pipeline()
    for (const message of messages.slice(start, start + 1000)) {
      for (const channel of channels) pipeline.publish(channel, message)
    }
    await pipeline.exec()
  }
}

/** Records all messages in the channels of the deployment. */
async function record(t: ExecutionContext, redis: RedisServer): Promise<readonly string[]> {
  const messages: string[] = []
  const subscriber = redis.admin.duplicate()
  t.teardown(() => subscriber.disconnect())
  subscriber.on('message', (_channel, message) => messages.push(message))
  await subscriber.subscribe(...(await channelsOf(redis)))
  return messages
}

/**
 * Resolves when the first replica has handled all messages that were published before. A user logs out at the second
 * replica, and the entry of this session is removed from Redis, so that the first replica can only know it from the message.
 */
async function allReceived({ one, two, redis }: Replicated): Promise<void> {
  const browser = two.newBrowser()
  const before = await redis.admin.keys('*:session:*')
  await signIn(browser)
  const entries = (await redis.admin.keys('*:session:*')).filter(key => !before.includes(key))
  const copy = copyAt(one, browser)
  await browser.navigate('/api/auth/logout')
  if (entries.length > 0) await redis.admin.del(...entries)
  await eventually(async () => (await profileStatus(copy)) === 401)
}

/** Returns the status of a login at the replica. */
async function loginStatus({ newBrowser }: TestServer, browser: Browser = newBrowser()): Promise<number> {
  return (await openCallback(browser, await startLogin(browser))).statusCode
}

/** Makes the second replica send a pause of 30 seconds to all replicas. */
async function pauseAll({ two, one }: Replicated): Promise<void> {
  two.idp.fail('token', faults.answer({ status: 429, headers: { 'Retry-After': '30' }, body: {} }))
  const browser = two.newBrowser()
  await loginStatus(two, browser)
  await eventually(async () => (await loginStatus(one)) === 503)
}

for (const rotates of [false, true]) {
  const rotation = 'during a rotation of the session secret, if this replica has both secrets and the other one the old'
  test(`a message of another replica pauses logins and ends sessions${rotates ? ` ${rotation}` : ''}`, async t => {
    const replicated = await startReplicated(t, { rotates })
    await allReceived(replicated)
    await pauseAll(replicated)
    t.is(await loginStatus(replicated.one), 503)
  })
}

test('neither forged messages nor recorded ones that are sent again pause logins or refreshes', async t => {
  const replicated = await startReplicated(t)
  const { one, redis } = replicated
  const { browser, clock, config } = one
  await signIn(browser)
  const recorded = await record(t, redis)
  await pauseAll(replicated)
  await eventually(() => recorded.length > 0)
  const [genuine = ''] = recorded
  const known = createKeyring([config.session.secret])
  const unknown = createKeyring(['a secret that this deployment does not have'])
  const [channel = ''] = (await channelsOf(redis)).filter(name => name.endsWith('messages'))
  for (const seconds of [31, 60, 600]) {
    clock.advanceSeconds(seconds)
    const plaintext = Buffer.from(JSON.stringify({ kind: 'pause', ms: 60_000, at: clock.now() }))
    await publish(redis, [
      ...recorded,
      '',
      'pause',
      'pause 60000',
      plaintext.toString(),
      'x'.repeat(1_000_000),
      unknown.sealer('message').seal(plaintext, channel),
      known.sealer('stored session').seal(plaintext, channel),
      known.sealer('message').seal(plaintext, 'another channel'),
      genuine.slice(0, -1),
      `${genuine}A`,
      genuine.replace(/.$/, last => (last === 'A' ? 'B' : 'A'))
    ])
    await allReceived(replicated)
    t.is(await loginStatus(one), 302)
  }
  clock.advanceSeconds(4000)
  t.is(await profileStatus(browser), 200)
})

test(`${FLOOD} forged messages with invented kinds and ids are not stored, and requests get responses meanwhile`, async t => {
  const replicated = await startReplicated(t)
  const { one, two, redis } = replicated
  await signIn(one.browser)
  const forged = Array.from({ length: FLOOD }, (_, n) =>
    JSON.stringify({ kind: 'loggedOut', id: `forged${n}`, rev: 1, from: 'me', at: Date.now() })
  )
  const flood = publish(redis, forged)
  t.is((await one.browser.get('/healthz')).statusCode, 200)
  await flood
  t.is((await one.browser.get('/healthz')).statusCode, 200)
  await allReceived(replicated)

  // After a loss of data, a replica writes everything to Redis again that it has in memory, in the order of its arrival.
  await two.server.close()
  await redis.admin.flushall()
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await eventually(async () => (await redis.admin.keys('*:session:*')).length > 0)
  t.deepEqual(await redis.admin.keys('*forged*'), [])
  t.true((await redis.admin.dbsize()) < 10)
  t.is(await profileStatus(one.browser), 200)
})
