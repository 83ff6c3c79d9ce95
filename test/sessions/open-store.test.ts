import test from 'ava'
import { systemClock } from '#src/base/clock.js'
import { createKeyring } from '#src/cookie/keyring.js'
import { createStores } from '#src/sessions/index.js'
import { type TestSettings, testConfig, unreachableIdp } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { collectLogs } from '../helpers/logs.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { PATIENT } from '../helpers/redis-clock.js'
import { repository } from '../helpers/repository.js'
import { runCommand } from '../helpers/run-command.js'
import { leaseFor, recordOf, underLease } from './replicas.js'

async function setUp(t: { teardown(end: () => unknown): void }, settings: TestSettings = {}) {
  const config = testConfig(unreachableIdp, settings)
  const keyring = createKeyring([config.session.secret])
  const stores = createStores(config, { keyring, clock: systemClock, log: (await collectLogs()).log, timing: PATIENT })
  t.teardown(() => stores.close())
  return stores
}

test('if redis.url is not set, the store is in the memory of this process', async t => {
  const { sessions, status } = await setUp(t)
  t.is(status(), 'off')
  t.is(await leaseFor({ sessions }, 'id'), 'granted')
  await sessions.end({ id: 'id' })
  t.deepEqual(await sessions.current({ id: 'id', rev: 0 }), { kind: 'over', end: { reason: 'logged_out' } })
})

test('a session whose record has arrived meanwhile is not recovered, so a pause of its token requests stays', async t => {
  const { sessions } = await setUp(t)
  const { id, rev } = recordOf('id', 1)
  const failure = { kind: 'failure', pauseMs: 30_000 } as const
  await underLease({ sessions }, { id, rev: 0 }, async () => ({
    kind: 'tokens',
    record: recordOf(id, rev),
    pauseMs: 0
  }))
  await underLease({ sessions }, recordOf(id, rev), async () => failure)
  t.like(await sessions.recover({ id, rev, key: 'its key' }), { kind: 'live', record: { rev } })
  t.is(await leaseFor({ sessions }, id), 'provider')
})

test('the Redis client is loaded only if redis.url is set', async t => {
  const script = (redisUrl: string) => `
    import { createRequire } from 'node:module'
    import { parseRedisUrl } from '#src/config/types/redis-url.js'
    import { createStores } from '#src/sessions/index.js'
    import { systemClock } from '#src/base/clock.js'
    const config = { mode: 'single', platform: {}, session: {}, refresh: {}, redis: { url: ${redisUrl} } }
    const log = { info() {}, warn() {}, error() {} }
    const keyring = { sealer() {}, hasher() {} }
    const { sessions } = createStores(config, { keyring, clock: systemClock, log })
    await sessions.current({ id: 'id', rev: 0 }).catch(() => {})
    const loaded = Object.keys(createRequire(import.meta.url).cache)
    console.log(loaded.some(path => path.includes('ioredis')))
    process.exit()`
  const run = async (redisUrl: string) => {
    const command = [process.execPath, '--input-type=module', '--eval', script(redisUrl)]
    return (await runCommand(command, { cwd: repository })).stdout.trim()
  }
  t.is(await run('undefined'), 'false')
  t.is(await run("parseRedisUrl('redis://127.0.0.1:1')"), 'true')
})

testWithRedis('only replicas with the same mode, client and issuer share their sessions in Redis', async t => {
  const { url: redisUrl } = await startRedis(t)
  const one = await setUp(t, { redis: { url: redisUrl } })
  const replica = await setUp(t, { redis: { url: redisUrl } })
  const others = [
    await setUp(t, { redis: { url: redisUrl }, mode: 'dual' }),
    await setUp(t, { redis: { url: redisUrl }, platform: { clientId: 'another' } }),
    await setUp(t, { redis: { url: redisUrl }, platform: { issuer: 'https://idp.example' } })
  ]
  t.is(one.status(), 'up')
  await one.sessions.end({ id: 'id' })
  await eventually(async () => (await replica.sessions.current({ id: 'id', rev: 0 })).kind === 'over')
  for (const { sessions } of others) t.is((await sessions.current({ id: 'id', rev: 0 })).kind, 'unavailable')
})
