import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import test, { type ExecutionContext } from 'ava'
import type { Finding } from '#src/cli/check/findings.js'
import { checkRedis, redisFindings } from '#src/cli/check/redis-findings.js'
import { clusterCommands, type RedisFacts, serverCommands } from '#src/cli/check/redis-inspection.js'
import { prefixOf } from '#src/sessions/index.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import { eventually } from '../../helpers/eventually.js'
import { listen } from '../../helpers/ports.js'
import { type RedisServer, startRedis, testWithRedis } from '../../helpers/redis.js'
import {
  startClusterWithTls,
  startRedisCluster,
  startRedisWithSentinel,
  startRedisWithTls
} from '../../helpers/redis-topologies.js'
import { clusterRights, documentedRights } from '../../sessions/rights.js'
import { fewAtOnce, isGolden, someProvider } from './checked.js'

const TRIES = 5

/**
 * Returns the findings about Redis. A check waits for two seconds, and on a busy machine the reply does not always
 * arrive in that time, so the check is repeated.
 */
async function findingsOf(settings: TestSettings): Promise<Finding[]> {
  for (let tries = 1; ; tries++) {
    const findings = await fewAtOnce(() => checkRedis(testConfig(someProvider, settings)))
    if (tries === TRIES || !findings[0]?.message.includes('did not respond within')) return findings
  }
}

type Redis = TestSettings['redis']

/** Returns the finding about the connection to this Redis and its rights. */
async function connectionTo(redis: Redis): Promise<Finding[]> {
  return (await findingsOf({ redis })).slice(0, 1)
}

async function isAccepted(t: ExecutionContext, redis: Redis): Promise<void> {
  t.is((await connectionTo(redis))[0]?.message, 'Redis responds and accepts the commands that replicas need.')
}

/** The URL of a Redis differs from run to run. */
const named = ({ port }: { readonly port: number }) => ({ [`:${port}`]: ':N' })

test('redis: none', async t => {
  isGolden(t, [
    ...(await findingsOf({ redis: { url: undefined } })),
    ...(await findingsOf({ redis: { url: undefined }, platform: { backchannelLogout: true } }))
  ])
})

testWithRedis('check accepts a working Redis, and the keys that it writes expire', async t => {
  const server = await startRedis(t)
  await isAccepted(t, { url: server.url })
  for (const key of await server.admin.keys('*check:*')) t.not(await server.admin.pttl(key), -1)
})

for (const [what, url] of Object.entries({
  'a closed port': 'redis://127.0.0.1:1',
  'a cluster in which no node responds': 'redis://127.0.0.1:1,127.0.0.1:2',
  'sentinels that do not respond': 'redis://127.0.0.1:1?sentinel=main'
})) {
  test(`redis: ${what}`, async t => isGolden(t, await connectionTo({ url })))
}

test('redis: a host name that does not exist', async t => {
  const [finding] = await connectionTo({ url: 'redis://no-such-host.invalid' })
  t.regex(finding?.message ?? '', /^Redis cannot be reached: DNS .* no-such-host\.invalid:6379/)
})

test('redis: a server that never responds', async t => {
  const port = await listen(t, createServer())
  isGolden(t, await connectionTo({ url: `redis://127.0.0.1:${port}` }), named({ port }))
})

interface Trouble {
  readonly options?: readonly string[]
  readonly url?: (server: RedisServer) => string
}

const troubles: Readonly<Record<string, Trouble>> = {
  'a read-only replica': { options: ['--replicaof', '127.0.0.1', '1'] },
  'a Redis that requires a password': { options: ['--requirepass', 'hunter2'] },
  'a Redis that rejects the password': {
    options: ['--requirepass', 'hunter2'],
    url: ({ port }) => `redis://:hunter3@127.0.0.1:${port}`
  },
  'a single Redis if redis.url says that it is a cluster': { url: ({ url }) => `${url}?cluster` },
  'rediss:// at a port without TLS': { url: ({ port }) => `rediss://127.0.0.1:${port}` },
  'a Redis without a free connection': { options: ['--maxclients', '1'] },
  'a Redis with one free connection': { options: ['--maxclients', '2'] },
  ...Object.fromEntries(
    ['EVAL', 'EVALSHA', 'TIME', 'HMGET', 'SUBSCRIBE'].map(name => [
      `a Redis that does not know ${name}`,
      { options: ['--rename-command', name, ''] }
    ])
  ),
  'a Redis that is full': { options: ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'] }
}

for (const [what, { options, url }] of Object.entries(troubles)) {
  testWithRedis(`redis: ${what}`, async t => {
    const server = await startRedis(t, options)
    // The connection of the test counts too.
    await server.admin.ping().catch(() => {})
    isGolden(t, await connectionTo({ url: url?.(server) ?? server.url }), named(server))
  })
}

testWithRedis('redis: a database that Redis does not have, or that the user may not select', async t => {
  const { url, port, admin } = await startRedis(t)
  await isAccepted(t, { url: `${url}/15` })
  await admin.acl('SETUSER', 'little', 'on', '>pass', '~*', '&*', '+@all', '-select')
  const little = `redis://little:pass@127.0.0.1:${port}/1`
  isGolden(t, [...(await connectionTo({ url: `${url}/16` })), ...(await connectionTo({ url: little }))])
  t.is(await admin.dbsize(), 0)
})

testWithRedis('redis: each command, key and channel that the user may not use', async t => {
  const { admin, port } = await startRedis(t)
  const prefix = prefixOf(testConfig(someProvider))
  const findings: Finding[] = []
  for (const rights of [
    [],
    ['-ping'],
    ['-hset', '-subscribe', '-evalsha'],
    ['resetkeys', '~other:*', 'resetchannels', '&other:*']
  ]) {
    await admin.acl('SETUSER', 'little', 'reset', 'on', '>pass', ...documentedRights, ...rights)
    findings.push(...(await connectionTo({ url: `redis://little:pass@127.0.0.1:${port}` })))
  }
  isGolden(t, findings, { [prefix]: 'PREFIX:' })
})

test('the documented ACL line allows every command that check tests', t => {
  for (const [name] of serverCommands('')) t.true(documentedRights.includes(`+${name.toLowerCase()}`), name)
  for (const words of clusterCommands) t.true(clusterRights.includes(`+${words.join('|').toLowerCase()}`), words.join())
})

testWithRedis('redis: it cannot save its data, or misses its replicas', async t => {
  const { url, admin, folder } = await startRedis(t, ['--save', '60 1'])
  await admin.set('key', 'value')
  await rm(folder, { recursive: true })
  await admin.bgsave()
  await eventually(async () => /rdb_last_bgsave_status:err/.test(await admin.info('persistence')))
  const unsaved = await connectionTo({ url })
  await admin.config('SET', 'stop-writes-on-bgsave-error', 'no')
  await admin.config('SET', 'min-replicas-to-write', '1')
  isGolden(t, [...unsaved, ...(await connectionTo({ url }))])
})

testWithRedis('redis: a node of a cluster without ?cluster', async t => {
  const { url, nodes } = await startRedisCluster(t)
  await isAccepted(t, { url })
  // The keys of a check are random, so all of them could be in the slots of one node.
  const single = await Promise.all([...nodes, ...nodes].map(node => findingsOf({ redis: { url: node.url } })))
  isGolden(t, [single.flat().find(({ message }) => message.includes('MOVED')) ?? ''])
})

for (const [what, options] of Object.entries({
  'has expired': { days: -1 },
  'is for another host': { host: 'other.example' }
})) {
  testWithRedis(`redis: its certificate ${what}`, async t => {
    const { url, certificate } = await startRedisWithTls(t, options)
    isGolden(t, await connectionTo({ url, caFile: certificate }))
  })
}

testWithRedis('redis: an untrusted certificate, until it is in redis.caFile', async t => {
  const { url, certificate } = await startRedisWithTls(t)
  isGolden(t, await connectionTo({ url }))
  await isAccepted(t, { url, caFile: certificate })
})

testWithRedis('redis: a password that Redis does not ask for', async t => {
  const unasked = async (options: readonly string[]) => {
    const { port } = await startRedis(t, options)
    const findings = await findingsOf({ redis: { url: `redis://:hunter2@127.0.0.1:${port}` } })
    return findings.filter(({ message }) => message.includes('no password'))
  }
  isGolden(t, await unasked([]))
  t.deepEqual(await unasked(['--requirepass', 'hunter2']), [])
})

for (const [what, start] of Object.entries({ 'a Redis': startRedisWithTls, 'a cluster': startClusterWithTls })) {
  testWithRedis(
    `redis: redis.serverName is the name in the certificate of ${what} that is reached by its IP address`,
    async t => {
      const { url, certificate: caFile } = await start(t, { host: 'redis.example' })
      const redis = { url: url.replace('localhost', '127.0.0.1'), caFile }
      const [finding] = await connectionTo(redis)
      t.regex(finding?.next ?? '', /redis\.serverName/)
      await isAccepted(t, { ...redis, serverName: 'redis.example' })
      t.is((await connectionTo({ ...redis, serverName: 'other.example' }))[0]?.status, 'failed')
    }
  )
}

testWithRedis('redis: it requires a client certificate', async t => {
  const { url, certificate: caFile, key } = await startRedisWithTls(t, { trusted: [] })
  isGolden(t, await connectionTo({ url, caFile }))
  await isAccepted(t, { url, caFile, certFile: caFile, keyFile: key })
})

testWithRedis('redis: sentinels that know the master, which accepts writes without a replica', async t => {
  const { url, master } = await startRedisWithSentinel(t)
  await isAccepted(t, { url })
  const warnings = async () =>
    (await findingsOf({ redis: { url } })).filter(({ message }) => message.includes('min-replicas-to-write'))
  isGolden(t, await warnings())
  await master.config('SET', 'min-replicas-to-write', '1')
  t.deepEqual(await warnings(), [])
})

testWithRedis('redis: redis:// at a port that requires TLS', async t => {
  const { url } = await startRedisWithTls(t)
  isGolden(t, await connectionTo({ url: url.replace('rediss:', 'redis:') }))
})

const good: RedisFacts = { 'maxmemory-policy': 'noeviction', save: '60 1', aof_enabled: '1', connected_slaves: '0' }

const noWarning = 'Redis evicts nothing, and keeps its data across a restart.'

test('a Redis with the recommended settings gets no warning', t => {
  for (const servers of [[good], [{ ...good, aof_enabled: '0', save: '', connected_slaves: '1' }], [good, good, good]])
    t.deepEqual(redisFindings(servers), [{ status: 'ok', message: noWarning }])
})

const { 'maxmemory-policy': _policy, ...unknownPolicy } = good
const warnings: Readonly<Record<string, RedisFacts>> = {
  'an eviction policy': { ...good, 'maxmemory-policy': 'volatile-ttl' },
  'no persistence': { ...good, aof_enabled: '0', save: '' },
  'persistence by snapshots only': { ...good, aof_enabled: '0' },
  'an unknown eviction policy': unknownPolicy,
  'an unknown persistence': { 'maxmemory-policy': 'noeviction' }
}

for (const [what, facts] of Object.entries(warnings)) {
  test(`redis: ${what}, once, even if several nodes have it`, t => isGolden(t, redisFindings([good, facts, facts])))
}

/** Returns the beginnings of the findings about the state of a Redis that can be reached. */
async function stateOf(url: string): Promise<string[]> {
  const [, ...rest] = await findingsOf({ redis: { url } })
  return rest.map(({ message }) => message.split(' ').slice(0, 4).join(' '))
}

testWithRedis('check reads the eviction policy and the persistence of Redis', async t => {
  const { url, admin } = await startRedis(t, ['--maxmemory-policy', 'allkeys-lru'])
  t.deepEqual(await stateOf(url), ['Redis evicts data when', 'Redis keeps nothing on'])
  await admin.config('SET', 'save', '60 1')
  t.deepEqual(await stateOf(url), ['Redis evicts data when', 'Redis saves only snapshots'])
})

for (const [what, more, unknown] of [
  ['INFO and CONFIG', [], 'its eviction policy and whether it keeps its data.'],
  // INFO does not tell if snapshots are made.
  ['CONFIG', ['+info'], 'whether it keeps its data.']
] as const) {
  testWithRedis(`check warns about what it cannot read because the user may not use ${what}`, async t => {
    const { port, admin } = await startRedis(t)
    await admin.acl('SETUSER', 'auth', 'on', '>pass', ...documentedRights, ...more)
    const findings = await findingsOf({ redis: { url: `redis://auth:pass@127.0.0.1:${port}` } })
    const unread = findings.find(({ message }) => message.startsWith('Redis does not report'))
    t.is(unread?.message, `Redis does not report ${unknown}`)
  })
}

testWithRedis('check examines every master of a cluster', async t => {
  const { url, nodes } = await startRedisCluster(t)
  for (const { admin } of nodes) await admin.config('SET', 'appendonly', 'yes')
  t.deepEqual(await stateOf(url), ['Redis evicts nothing, and'])
  await nodes.at(-1)?.admin.config('SET', 'maxmemory-policy', 'volatile-ttl')
  t.deepEqual(await stateOf(url), ['Redis evicts data when'])
})
