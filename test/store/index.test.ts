import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import test from 'ava'
import type { Config } from '#src/config/settings.js'
import { createCoordination } from '#src/coordination/index.js'
import { createKeyring } from '#src/sealing/keyring.js'
import { type DeepPartial, testConfig, unreachableIdp } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { collectLogs } from '../helpers/logs.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'

async function setUp(t: { teardown(end: () => unknown): void }, overrides: DeepPartial<Config> = {}) {
  const config = testConfig(unreachableIdp, overrides)
  const keyring = createKeyring([config.session.secret])
  const coordination = createCoordination(config, { keyring, now: Date.now, log: (await collectLogs()).log })
  t.teardown(() => coordination.close())
  return coordination
}

test('if redisUrl is not set, the store is in the memory of this process', async t => {
  const coordination = await setUp(t)
  t.deepEqual(coordination.status(), { store: 'memory' })
  await coordination.mark('key', 1000)
  t.true(await coordination.isMarked('key'))
})

test('the Redis client is loaded only if redisUrl is set', async t => {
  const script = (redisUrl: string) => `
    import { createRequire } from 'node:module'
    import { createCoordination } from '#src/coordination/index.js'
    const config = { mode: 'single', platform: {}, redisUrl: ${redisUrl} }
    const log = { info() {}, warn() {} }
    const coordination = createCoordination(config, { keyring: { sealer() {} }, now: Date.now, log })
    await coordination.isMarked('key')
    const loaded = Object.keys(createRequire(import.meta.url).cache)
    console.log(loaded.some(path => path.includes('ioredis')))
    process.exit()`
  const run = async (redisUrl: string) => {
    const args = ['--input-type=module', '--eval', script(redisUrl)]
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: new URL('../..', import.meta.url) })
    return stdout.trim()
  }
  t.is(await run('undefined'), 'false')
  t.is(await run("'redis://127.0.0.1:1'"), 'true')
})

testWithRedis('only replicas with the same mode, client and issuer share their marks in Redis', async t => {
  const { url: redisUrl } = await startRedis(t)
  const one = await setUp(t, { redisUrl })
  const replica = await setUp(t, { redisUrl })
  const others = [
    await setUp(t, { redisUrl, mode: 'dual' }),
    await setUp(t, { redisUrl, platform: { clientId: 'another' } }),
    await setUp(t, { redisUrl, platform: { issuer: 'https://idp.example' } })
  ]
  t.deepEqual(one.status(), { store: 'redis' })
  await one.mark('key', 60_000)
  await eventually(() => replica.isMarked('key'))
  for (const other of others) t.false(await other.isMarked('key'))
})
