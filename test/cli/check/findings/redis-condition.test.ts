import test from 'ava'
import { redis } from '#src/cli/check/findings/redis.js'
import { redisFindings } from '#src/cli/check/findings/redis-condition.js'
import type { RedisCondition } from '#src/store/redis-condition.js'
import { testConfig } from '../../../helpers/config.js'
import { startRedis, testWithRedis } from '../../../helpers/redis.js'
import { startRedisCluster } from '../../../helpers/redis-topologies.js'
import { documentedRights } from '../../../store/rights.js'
import { someProvider } from '../checked.js'

const MIB = 1024 * 1024
const good: RedisCondition = {
  evictionPolicy: 'noeviction',
  usedBytes: 80 * MIB,
  maxBytes: 100 * MIB,
  persistence: 'append-only file',
  hasFailedToSave: false,
  hasReplicas: false
}

function lines(...conditions: readonly RedisCondition[]): string[] {
  return redisFindings(conditions).map(({ status, message }) => `${status} ${message}`)
}

const fine = 'ok Redis evicts nothing, has free memory, and keeps its data at a restart.'

test('a Redis with the recommended settings gets no warning', t => {
  t.deepEqual(lines(good), [fine])
  t.deepEqual(lines({ ...good, persistence: 'none', hasReplicas: true }), [fine])
  t.deepEqual(lines(good, good, good), [fine])
})

const warnings: readonly (readonly [what: string, change: Partial<RedisCondition>, says: RegExp])[] = [
  [
    'an eviction policy',
    { evictionPolicy: 'volatile-ttl' },
    /^warning Redis evicts data .*\(maxmemory-policy volatile-ttl\)/
  ],
  ['no memory limit', { maxBytes: 0 }, /^warning Redis has no memory limit/],
  [
    'little free memory',
    { usedBytes: 80 * MIB + 1, maxBytes: 100 * MIB },
    /^warning Redis uses 80 % of its memory limit of 100 MiB/
  ],
  ['no persistence', { persistence: 'none' }, /^warning Redis keeps nothing on disk and has no replica/],
  [
    'persistence by snapshots only',
    { persistence: 'snapshots' },
    /^warning Redis saves only snapshots and has no replica/
  ],
  ['a failed write to disk', { hasFailedToSave: true }, /^warning Redis could not save its data to disk/],
  [
    'an unknown eviction policy',
    { evictionPolicy: undefined },
    /^warning Redis does not report its eviction policy\.$/
  ],
  ['an unknown memory use', { usedBytes: undefined }, /^warning Redis does not report how full it is\.$/],
  ['an unknown persistence', { persistence: undefined }, /^warning Redis does not report whether it keeps its data\.$/]
]

for (const [what, change, says] of warnings) {
  test(`check warns about ${what} once, even if several nodes have it`, t => {
    const found = lines(good, { ...good, ...change }, { ...good, ...change })
    t.is(found.length, 1)
    t.regex(found[0] ?? '', says)
  })
}

test('every warning about Redis tells the operator what to do', t => {
  for (const [, change] of warnings) {
    for (const { next } of redisFindings([{ ...good, ...change }])) t.regex(next ?? '', /^[A-Z].*\.$/)
  }
})

/** Returns the findings about the condition of a Redis that can be reached, each on one line. */
async function found(redisUrl: string): Promise<string[]> {
  const [, ...rest] = await redis(testConfig(someProvider, { redisUrl }))
  return rest.map(({ status, message }) => `${status} ${message}`)
}

const recommended = ['--maxmemory', '64mb', '--maxmemory-policy', 'noeviction', '--appendonly', 'yes']

testWithRedis('a new Redis with the recommended settings gets no warning', async t => {
  const { url } = await startRedis(t, recommended)
  t.deepEqual(await found(url), [fine])
})

testWithRedis('check warns about a Redis without memory limit and persistence', async t => {
  const { url, admin } = await startRedis(t, ['--maxmemory-policy', 'allkeys-lru'])
  const [policy, limit, disk, ...more] = await found(url)
  t.regex(policy ?? '', /maxmemory-policy allkeys-lru/)
  t.regex(limit ?? '', /no memory limit/)
  t.regex(disk ?? '', /keeps nothing on disk/)
  t.deepEqual(more, [])
  await admin.config('SET', 'save', '60 1')
  t.regex((await found(url))[2] ?? '', /saves only snapshots/)
})

testWithRedis('check warns about a Redis that is nearly full', async t => {
  const { url, admin } = await startRedis(t, ['--maxmemory', '32mb'])
  for (let part = 0; part < 18; part++) await admin.set(`part ${part}`, 'x'.repeat(1.4 * MIB))
  t.regex((await found(url)).join(), /^warning Redis uses (8|9)\d % of its memory limit of 32 MiB/)
})

const forbidden: readonly (readonly [what: string, more: readonly string[], unknown: string])[] = [
  ['INFO and CONFIG', [], 'its eviction policy, how full it is, whether it keeps its data'],
  ['INFO', ['+config|get'], 'how full it is'],
  // INFO does not tell if snapshots are made.
  ['CONFIG', ['+info'], 'whether it keeps its data']
]

for (const [what, more, unknown] of forbidden) {
  testWithRedis(
    `check warns about the conditions that it cannot read because the Redis user may not use ${what}`,
    async t => {
      const { port, admin } = await startRedis(t, ['--maxmemory', '64mb'])
      await admin.acl('SETUSER', 'auth', 'on', '>pass', ...documentedRights, ...more)
      t.deepEqual(
        (await found(`redis://auth:pass@127.0.0.1:${port}`)).filter(line => line.includes('does not report')),
        [`warning Redis does not report ${unknown}.`]
      )
    }
  )
}

testWithRedis('check examines every master of a cluster', async t => {
  const { url, nodes } = await startRedisCluster(t)
  for (const { admin } of nodes) {
    await admin.config('SET', 'maxmemory', '64mb')
    await admin.config('SET', 'appendonly', 'yes')
  }
  t.deepEqual(await found(url), [fine])
  const last = nodes.at(-1)
  await last?.admin.config('SET', 'maxmemory-policy', 'volatile-ttl')
  t.regex((await found(url)).join(), /^warning Redis evicts data .*volatile-ttl/)
})
