// Somebody who can write to Redis must not be able to end a process with one long value or message.
import ava, { type ExecutionContext } from 'ava'
import fc from 'fast-check'
import type { Redis } from 'ioredis'
import { createReplyLimit, MAX_REPLY_BYTES } from '#src/sessions/redis/reply-limit.js'
import { eventually } from '../helpers/eventually.js'
import { startRedis, testWithRedis as test } from '../helpers/redis.js'
import { startRedisWithSentinel } from '../helpers/redis-topologies.js'
import { signIn } from '../helpers/server.js'
import { copyAt, profileStatus, startServers } from './deployment.js'

const text = fc.string({ maxLength: 30 })
const reply = fc.oneof(
  text.map(value => ({ bytes: `$${Buffer.byteLength(value)}\r\n${value}\r\n`, longest: Buffer.byteLength(value) })),
  fc
    .constantFrom('+OK\r\n', ':1000000\r\n', '-ERR $99 is wrong\r\n', '$-1\r\n', '*2\r\n')
    .map(bytes => ({ bytes, longest: 0 }))
)

ava('a reply is too long exactly if one of its strings is, however the bytes are divided', t => {
  fc.assert(
    fc.property(
      fc.array(reply),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 20, max: 30 }),
      (replies, size, limit) => {
        const isTooLong = createReplyLimit(limit)
        const bytes = Buffer.from(replies.map(({ bytes }) => bytes).join(''))
        let found = false
        for (let at = 0; at < bytes.length && !found; at += size) found = isTooLong(bytes.subarray(at, at + size))
        t.is(found, Math.max(0, ...replies.map(({ longest }) => longest)) > limit)
      }
    )
  )
})

ava('a string is refused when its length is announced, before its content arrives', t => {
  t.true(createReplyLimit()(Buffer.from(`*2\r\n$${MAX_REPLY_BYTES + 1}\r\n`)))
  t.false(createReplyLimit()(Buffer.from(`*2\r\n$${MAX_REPLY_BYTES}\r\n`)))
})

const LONG = 'x'.repeat(60_000_000)

for (const field of ['e', 'r']) {
  test(`a value of 60 MB in the field ${field} costs no memory, and only its session gets 503, until a logout`, async t => {
    const { redis, servers } = await startServers(t, { settings: { session: { store: 'redis' } } })
    const [one, two] = servers
    await signIn(one.browser)
    const [key = ''] = await redis.admin.keys('*:session:*')
    const other = one.newBrowser()
    await signIn(other)
    two.connect(one.browser)
    two.connect(other)
    await redis.admin.hset(key, field, LONG)
    const before = process.memoryUsage()
    for (let n = 0; n < 10; n++) t.is(await profileStatus(one.browser), 503)
    await eventually(async () => (await profileStatus(other)) === 200)
    for (let n = 0; n < 5; n++) {
      t.is(await profileStatus(one.browser), 503)
      t.is(await profileStatus(other), 200)
    }
    const after = process.memoryUsage()
    const grownBytes =
      after.external + after.arrayBuffers + after.heapUsed - before.external - before.arrayBuffers - before.heapUsed
    t.true(grownBytes < 40_000_000, `${grownBytes} bytes more`)
    const copy = one.browser.clone()
    await one.browser.navigate('/api/auth/logout')
    t.is(await profileStatus(copy), 401)
    t.true((await redis.admin.hstrlen(key, field)) < 1000)
  })
}

const TOO_LONG = 'x'.repeat(2 * MAX_REPLY_BYTES)

// Redis itself disconnects a subscriber only if the message is much longer, so the server has closed these connections.
for (const [kind, start] of [
  ['a server', startRedis],
  [
    'sentinels',
    async t => {
      const { url, master } = await startRedisWithSentinel(t)
      return { url, admin: master }
    }
  ]
] satisfies [string, (t: ExecutionContext) => Promise<{ url: string; admin: Redis }>][]) {
  test(`a message that is too long costs the connection, and replicas then hear of logouts again: ${kind}`, async t => {
    const { url, admin } = await start(t)
    const { servers } = await startServers(t, { settings: { redis: { url } } })
    const [one, two] = servers
    const subscribers = async () => {
      const clients = String(await admin.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
      return [...clients.matchAll(/^id=(\d+) .*name=platform-auth-server /gm)].map(([, id]) => id)
    }
    await eventually(async () => (await subscribers()).length === 2)
    const before = await subscribers()
    const [channel = ''] = (await admin.pubsub('CHANNELS', 'platform-auth:*')) as string[]
    await admin.publish(channel, TOO_LONG)
    await eventually(async () => {
      const after = await subscribers()
      return after.length === 2 && !after.some(id => before.includes(id))
    })
    await signIn(one.browser)
    const copy = copyAt(two, one.browser)
    await one.browser.navigate('/api/auth/logout')
    t.is(await profileStatus(copy), 401)
  })
}
