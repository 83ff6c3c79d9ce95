import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import test from 'ava'
import { createKeyring } from '#src/session/keyring.js'
import { createStore } from '#src/store/index.js'
import { systemClock } from '#src/support/clock.js'
import { type TestSettings, testConfig, unreachableIdp } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { collectLogs } from '../helpers/logs.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { recordOf } from './replicas.js'

async function setUp(t: { teardown(end: () => unknown): void }, overrides: TestSettings = {}) {
  const config = testConfig(unreachableIdp, overrides)
  const keyring = createKeyring([config.session.secret])
  const store = createStore(config, { keyring, clock: systemClock, log: (await collectLogs()).log })
  t.teardown(() => store.close())
  return store
}

test('if redisUrl is not set, the store is in the memory of this process', async t => {
  const store = await setUp(t)
  t.is(store.status(), 'memory')
  const answer = await store.take({ id: 'id', rev: 0 }, undefined)
  t.is(answer.kind, 'mine')
  await store.logOut(recordOf('id', 1))
  t.is((await store.look(recordOf('id', 1))).kind, 'out')
})

test('the Redis client is loaded only if redisUrl is set', async t => {
  const script = (redisUrl: string) => `
    import { createRequire } from 'node:module'
    import { parseRedisAddress } from '#src/config/redis-address.js'
    import { createStore } from '#src/store/index.js'
    import { systemClock } from '#src/support/clock.js'
    const config = { mode: 'single', platform: {}, session: {}, refresh: {}, redisUrl: ${redisUrl} }
    const log = { info() {}, warn() {}, error() {} }
    const store = createStore(config, { keyring: { sealer() {} }, clock: systemClock, log })
    await store.look({ id: 'id', rev: 1 })
    const loaded = Object.keys(createRequire(import.meta.url).cache)
    console.log(loaded.some(path => path.includes('ioredis')))
    process.exit()`
  const run = async (redisUrl: string) => {
    const args = ['--input-type=module', '--eval', script(redisUrl)]
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: new URL('../..', import.meta.url) })
    return stdout.trim()
  }
  t.is(await run('undefined'), 'false')
  t.is(await run("parseRedisAddress('redis://127.0.0.1:1')"), 'true')
})

testWithRedis('only replicas with the same mode, client and issuer share their sessions in Redis', async t => {
  const { url: redisUrl } = await startRedis(t)
  const one = await setUp(t, { redisUrl })
  const replica = await setUp(t, { redisUrl })
  const others = [
    await setUp(t, { redisUrl, mode: 'dual' }),
    await setUp(t, { redisUrl, platform: { clientId: 'another' } }),
    await setUp(t, { redisUrl, platform: { issuer: 'https://idp.example' } })
  ]
  t.is(one.status(), 'redis')
  await one.logOut(recordOf('id', 1))
  await eventually(async () => (await replica.look(recordOf('id', 1))).kind === 'out')
  for (const other of others) t.is((await other.look(recordOf('id', 1))).kind, 'current')
})
