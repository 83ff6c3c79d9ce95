import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { systemClock } from '#src/base/clock.js'
import type { Finding } from '#src/cli/check/findings.js'
import { checkRedis, redisFindings } from '#src/cli/check/redis.js'
import {
  clusterCommands,
  optionalCommands,
  type RedisCondition,
  serverCommands
} from '#src/cli/check/redis-inspection.js'
import { createHostSlots } from '#src/sessions/host-slots.js'
import { prefixOf } from '#src/sessions/index.js'
import { createMemoryValues } from '#src/sessions/memory-cells.js'
import { countProcesses } from '#src/sessions/port-socket.js'
import { selfSignedCertificate } from '../../helpers/certificate.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import { eventually } from '../../helpers/eventually.js'
import { freePort, listen } from '../../helpers/ports.js'
import { type RedisServer, startRedis, testWithRedis } from '../../helpers/redis.js'
import {
  startClusterWithTls,
  startRedisCluster,
  startRedisWithSentinel,
  startRedisWithTls
} from '../../helpers/redis-topologies.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { clusterRights, documentedRights } from '../../sessions/rights.js'
import { areFindings, checkAt, fewAtOnce, isFinding, someProvider } from './checked.js'

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

/** Asserts the finding about the connection to this Redis and its rights. */
async function reports(t: ExecutionContext, redis: TestSettings['redis'], expected: string): Promise<void> {
  const [finding] = await findingsOf({ redis })
  isFinding(t, finding, expected)
}

/** Asserts the findings about the condition of a Redis that can be reached. */
async function reportsCondition(t: ExecutionContext, url: string, ...expected: readonly string[]): Promise<void> {
  const [, ...rest] = await findingsOf({ redis: { url } })
  areFindings(t, rest, expected)
}

const working = 'ok accepts'

test('check reports that no Redis is configured', async t => {
  await reports(t, { url: undefined }, 'ok No Redis configured replicas redis.url')
  const [finding] = await findingsOf({ redis: { url: undefined }, platform: { backchannelLogout: true } })
  isFinding(t, finding, 'ok restart no longer sessions')
})

const testOnLinux = process.platform === 'linux' ? test : test.skip

testOnLinux('check warns if several processes share the port without Redis', async t => {
  const cells = createMemoryValues<number>(Date.now, 300_000)
  const port = await freePort()
  for (const owner of ['one', 'two']) {
    const hostSlots = createHostSlots({
      cells,
      owner,
      clock: systemClock,
      log: { warn() {} },
      hasRedis: false,
      isWorker: true
    })
    t.teardown(() => hostSlots.close())
    hostSlots.start(port)
  }
  await eventually(async () => (await countProcesses(port)) === 2)
  areFindings(t, await findingsOf({ port, redis: { url: undefined } }), [
    `warning 2 processes ${port} refresh token → redis.url`
  ])
})

testWithRedis('check accepts a working Redis, and the keys that it writes expire', async t => {
  const server = await startRedis(t)
  await reports(t, { url: server.url }, working)
  for (const key of await server.admin.keys('*check:*')) t.not(await server.admin.pttl(key), -1)
})

for (const [what, url, expected] of [
  ['a closed port', 'redis://127.0.0.1:1', 'failed 127.0.0.1:1 refuses ECONNREFUSED → redis.url firewall'],
  ['a host name that does not exist', 'redis://no-such-host.invalid', 'failed DNS no-such-host.invalid:6379'],
  [
    'a cluster in which no node responds',
    'redis://127.0.0.1:1,127.0.0.1:2',
    'failed 127.0.0.1:1, 127.0.0.1:2 closed immediately → redis.url rediss:// redis://'
  ],
  [
    'sentinels that do not respond',
    'redis://127.0.0.1:1?sentinel=main',
    'failed sentinels 127.0.0.1:1 "main" → sentinel= redis.url'
  ]
] as const) {
  test(`check fails for ${what} in redis.url`, t => reports(t, { url }, expected))
}

test('check fails after the time limit for a Redis that never responds', async t => {
  const host = `127.0.0.1:${await listen(t, createServer())}`
  await reports(t, { url: `redis://${host}` }, `failed ${host} 2 s → firewall`)
})

interface Trouble {
  readonly options?: readonly string[]
  readonly url?: (server: RedisServer) => string
  readonly finding: string
}

const troubles: Readonly<Record<string, Trouble>> = {
  'a read-only replica': {
    options: ['--replicaof', '127.0.0.1', '1'],
    finding: 'failed read-only replica READONLY → redis.url master sentinels'
  },
  'a Redis that requires a password': {
    options: ['--requirepass', 'hunter2'],
    finding: 'failed requires password NOAUTH → user password redis.url'
  },
  'a Redis that rejects the password': {
    options: ['--requirepass', 'hunter2'],
    url: ({ port }) => `redis://:hunter3@127.0.0.1:${port}`,
    finding: 'failed rejects user password WRONGPASS → user password redis.url'
  },
  'a single Redis if redis.url says that it is a cluster': {
    url: ({ url }) => `${url}?cluster`,
    finding: 'failed invalid ERR → cluster'
  },
  'rediss:// at a port without TLS': {
    url: ({ port }) => `rediss://127.0.0.1:${port}`,
    finding: 'failed 127.0.0.1 2 s → firewall TLS rediss://'
  },
  'a Redis without a free connection': {
    options: ['--maxclients', '1'],
    finding: 'failed no free connection maxclients → maxclients two'
  },
  'a Redis with one free connection': {
    options: ['--maxclients', '2'],
    finding: 'failed no free connection maxclients → maxclients two'
  },
  ...Object.fromEntries(
    ['EVAL', 'EVALSHA', 'TIME', 'HMGET', 'SUBSCRIBE'].map(name => [
      `a Redis that does not know ${name}`,
      {
        options: ['--rename-command', name, ''],
        finding: `failed does not know ${name} rename-command → name`
      }
    ])
  ),
  'a Redis that is full': {
    options: ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'],
    finding: 'failed full OOM → maxmemory other data'
  }
}

for (const [what, { options, url, finding }] of Object.entries(troubles)) {
  testWithRedis(`check fails for ${what}`, async t => {
    const server = await startRedis(t, options)
    // The connection of the test counts too.
    await server.admin.ping().catch(() => {})
    await reports(t, { url: url?.(server) ?? server.url }, finding)
  })
}

testWithRedis('check fails for a database that Redis does not have, or that the user may not select', async t => {
  const { url, port, admin } = await startRedis(t)
  await reports(t, { url: `${url}/15` }, working)
  await reports(t, { url: `${url}/16` }, 'failed database 16 redis.url ERR → lower "databases" cluster')
  await admin.acl('SETUSER', 'little', 'on', '>pass', '~*', '&*', '+@all', '-select')
  const little = `redis://little:pass@127.0.0.1:${port}/1`
  await reports(t, { url: little }, 'failed database 1 redis.url NOPERM → +select database 0')
  t.is(await admin.dbsize(), 0)
})

testWithRedis('check names each command, key and channel that the Redis user may not use', async t => {
  const { admin, port } = await startRedis(t)
  const prefix = prefixOf(testConfig(someProvider))
  for (const [rights, finding] of [
    [[], working],
    [['-ping'], 'failed NOPERM commands PING → +ping docs/run/redis.md'],
    [
      ['-hset', '-subscribe', '-evalsha'],
      'failed NOPERM commands EVALSHA, HSET, SUBSCRIBE → +evalsha +hset +subscribe'
    ],
    [
      ['resetkeys', '~other:*', 'resetchannels', '&other:*'],
      `failed NOPERM keys ${prefix}*; channels ${prefix}* → ~${prefix}* &${prefix}*`
    ]
  ] as const) {
    await admin.acl('SETUSER', 'little', 'reset', 'on', '>pass', ...documentedRights, ...rights)
    await reports(t, { url: `redis://little:pass@127.0.0.1:${port}` }, finding)
  }
})

testWithRedis(
  'check accepts a user with only the listed rights, and warns if connections can have no name',
  async t => {
    const { admin, port } = await startRedis(t)
    const prefix = prefixOf(testConfig(someProvider))
    const commands = [...serverCommands.map(([name]) => name), 'SUBSCRIBE'].map(name => `+${name.toLowerCase()}`)
    await admin.acl('SETUSER', 'little', 'on', '>pass', `~${prefix}*`, `&${prefix}*`, ...commands)
    const findings = await findingsOf({ redis: { url: `redis://little:pass@127.0.0.1:${port}` } })
    areFindings(t, findings.slice(0, 2), [working, 'warning → +client|setname'])
  }
)

test('the documented ACL line allows every command that check tests', t => {
  for (const [name] of [...serverCommands, ...optionalCommands])
    t.true(documentedRights.includes(`+${name.toLowerCase()}`), name)
  for (const [name] of clusterCommands) t.true(clusterRights.includes(`+${name.toLowerCase()}`), name)
})

testWithRedis('check fails for a Redis that cannot save its data, or that misses its replicas', async t => {
  const { url, admin, folder } = await startRedis(t, ['--save', '60 1'])
  await admin.set('key', 'value')
  await rm(folder, { recursive: true })
  await admin.bgsave()
  await eventually(async () => /rdb_last_bgsave_status:err/.test(await admin.info('persistence')))
  await reports(t, { url }, 'failed no writes disk MISCONF → log disk folder')
  await admin.config('SET', 'stop-writes-on-bgsave-error', 'no')
  await admin.config('SET', 'min-replicas-to-write', '1')
  await reports(t, { url }, 'failed no writes few replicas NOREPLICAS')
})

testWithRedis('check accepts a working cluster, and fails for one of its nodes without ?cluster', async t => {
  const { url, nodes } = await startRedisCluster(t)
  await reports(t, { url }, working)
  // The keys of a check are random, so all of them could be in the slots of one node.
  const single = await Promise.all([...nodes, ...nodes].map(node => findingsOf({ redis: { url: node.url } })))
  const moved = single.flat().find(({ message }) => message.includes('MOVED'))
  isFinding(t, moved, 'failed node cluster MOVED → ?cluster redis.url')
})

for (const [what, options, finding] of [
  ['has expired', { days: -1 }, 'failed certificate localhost expired CERT_HAS_EXPIRED → clock renew'],
  ['is for another host', { host: 'other.example' }, 'failed certificate localhost different name']
] as const) {
  testWithRedis(`check fails for a Redis whose certificate ${what}`, async t => {
    const { url, certificate } = await startRedisWithTls(t, options)
    await reports(t, { url, caFile: certificate }, finding)
  })
}

testWithRedis('check fails for an untrusted certificate of Redis until it is in redis.caFile', async t => {
  const { url, certificate } = await startRedisWithTls(t)
  await reports(t, { url }, 'failed trust certificate localhost DEPTH_ZERO_SELF_SIGNED_CERT → redis.caFile')
  await reports(t, { url, caFile: certificate }, working)
})

testWithRedis('check warns about a password that Redis does not ask for', async t => {
  const unasked = async (options: readonly string[]) => {
    const { port } = await startRedis(t, options)
    const findings = await findingsOf({ redis: { url: `redis://:hunter2@127.0.0.1:${port}` } })
    isFinding(t, findings[0], working)
    return findings.filter(({ message }) => message.includes('no password'))
  }
  areFindings(t, await unasked([]), ['warning → requirepass ACL'])
  areFindings(t, await unasked(['--requirepass', 'hunter2']), [])
})

for (const [what, start] of Object.entries({ 'a Redis': startRedisWithTls, 'a cluster': startClusterWithTls })) {
  testWithRedis(
    `redis.serverName is the name in the certificate of ${what} that is reached by its IP address`,
    async t => {
      const { url, certificate: caFile } = await start(t, { host: 'redis.example' })
      const redis = { url: url.replace('localhost', '127.0.0.1'), caFile }
      await reports(t, redis, 'failed different name ERR_TLS_CERT_ALTNAME_INVALID → redis.serverName')
      await reports(t, { ...redis, serverName: 'redis.example' }, working)
      await reports(t, { ...redis, serverName: 'other.example' }, 'failed')
    }
  )
}

testWithRedis('check says why Redis refuses the client certificate', async t => {
  const [stranger, expired] = [
    selfSignedCertificate({ host: 'stranger' }),
    selfSignedCertificate({ host: 'expired', days: -1 })
  ]
  const { url, certificate: caFile, key } = await startRedisWithTls(t, { trusted: [expired.cert] })
  const folder = await tempFolder(t, {
    'stranger.pem': stranger.cert,
    'stranger.key': stranger.key,
    'expired.pem': expired.cert,
    'expired.key': expired.key
  })
  const filesOf = (name: string) => ({ certFile: join(folder, `${name}.pem`), keyFile: join(folder, `${name}.key`) })
  for (const [files, finding] of [
    [{}, 'failed localhost requires client certificate CERTIFICATE_REQUIRED'],
    [filesOf('stranger'), 'failed who signed UNKNOWN_CA'],
    [filesOf('expired'), 'failed expired CERTIFICATE_EXPIRED'],
    [{ certFile: caFile, keyFile: key }, working]
  ] as const)
    await reports(t, { url, caFile, ...files }, finding)
})

testWithRedis('check accepts sentinels that know the master, and warns about writes without a replica', async t => {
  const { url, master } = await startRedisWithSentinel(t)
  await reports(t, { url }, working)
  const warnings = async () =>
    (await findingsOf({ redis: { url } })).filter(({ message }) => message.includes('min-replicas-to-write'))
  areFindings(t, await warnings(), ['warning without replica (min-replicas-to-write 0)'])
  await master.config('SET', 'min-replicas-to-write', '1')
  areFindings(t, await warnings(), [])
})

testWithRedis('check fails for redis:// at a port that requires TLS', async t => {
  const { url } = await startRedisWithTls(t)
  await reports(t, { url: url.replace('rediss:', 'redis:') }, 'failed localhost closed → redis.url TLS rediss://')
})

test('check does not print the password of redis.url', async t => {
  const { output, found } = await checkAt(t, { env: () => ({ REDIS_URL: 'redis://user:hunter2@127.0.0.1:1/0' }) })
  isFinding(t, found('redis'), 'failed 127.0.0.1:1 refuses')
  t.false(output.includes('hunter2'))
})

const MIB = 1024 * 1024
const good: RedisCondition = {
  evictionPolicy: 'noeviction',
  usedBytes: 80 * MIB,
  maxBytes: 100 * MIB,
  persistence: 'append-only file',
  hasFailedToSave: false,
  hasReplicas: false
}

const noWarning = 'ok evicts nothing keeps'

test('a Redis with the recommended settings gets no warning', t => {
  for (const conditions of [[good], [{ ...good, persistence: 'none', hasReplicas: true } as const], [good, good, good]])
    areFindings(t, redisFindings(conditions, 'cookie'), [noWarning])
})

const warnings: readonly (readonly [what: string, change: Partial<RedisCondition>, finding: string])[] = [
  ['an eviction policy', { evictionPolicy: 'volatile-ttl' }, 'warning evicts (maxmemory-policy volatile-ttl)'],
  ['no memory limit', { maxBytes: 0 }, 'warning no memory limit'],
  ['little free memory', { usedBytes: 80 * MIB + 1, maxBytes: 100 * MIB }, 'warning memory 80 % 100 MiB'],
  ['no persistence', { persistence: 'none' }, 'warning nothing on disk no replica'],
  ['persistence by snapshots only', { persistence: 'snapshots' }, 'warning only snapshots no replica'],
  ['a failed write to disk', { hasFailedToSave: true }, 'warning not save disk'],
  ['an unknown eviction policy', { evictionPolicy: undefined }, 'warning not report eviction'],
  ['an unknown memory use', { usedBytes: undefined }, 'warning not report how full'],
  ['an unknown persistence', { persistence: undefined }, 'warning not report whether keeps']
]

for (const [what, change, finding] of warnings) {
  test(`check warns about ${what} once, even if several nodes have it`, t => {
    areFindings(t, redisFindings([good, { ...good, ...change }, { ...good, ...change }], 'cookie'), [finding])
  })
}

test('with session.store redis, the warnings about lost data say that users are signed out', t => {
  const findings = redisFindings([{ ...good, persistence: 'none', evictionPolicy: 'allkeys-lru' }], 'redis')
  areFindings(t, findings, ['warning evicts signed out', 'warning disk signed out'])
})

testWithRedis('check warns about a Redis without memory limit and persistence', async t => {
  const { url, admin } = await startRedis(t, ['--maxmemory-policy', 'allkeys-lru'])
  const [policy, limit] = ['warning maxmemory-policy allkeys-lru', 'warning no memory limit']
  await reportsCondition(t, url, policy, limit, 'warning nothing on disk')
  await admin.config('SET', 'save', '60 1')
  await reportsCondition(t, url, policy, limit, 'warning only snapshots')
})

testWithRedis('check warns about a Redis that is nearly full', async t => {
  const { url, admin } = await startRedis(t, ['--maxmemory', '32mb'])
  for (let part = 0; part < 18; part++) await admin.set(`part ${part}`, 'x'.repeat(1.4 * MIB))
  const findings = await findingsOf({ redis: { url } })
  const full = findings.find(({ message }) => message.includes('32 MiB'))
  isFinding(t, full, 'warning memory limit')
  t.regex(full?.message ?? '', /\b[89]\d %/)
})

const conditions = ['eviction', 'full', 'keeps']
const forbidden: Readonly<Record<string, readonly [more: readonly string[], unknown: readonly string[]]>> = {
  'INFO and CONFIG': [[], conditions],
  INFO: [['+config|get'], ['full']],
  // INFO does not tell if snapshots are made.
  CONFIG: [['+info'], ['keeps']]
}

for (const [what, [more, unknown]] of Object.entries(forbidden)) {
  testWithRedis(`check warns about conditions that it cannot read because the user may not use ${what}`, async t => {
    const { port, admin } = await startRedis(t, ['--maxmemory', '64mb'])
    await admin.acl('SETUSER', 'auth', 'on', '>pass', ...documentedRights, ...more)
    const findings = await findingsOf({ redis: { url: `redis://auth:pass@127.0.0.1:${port}` } })
    const unread = findings.filter(({ message }) => message.includes('does not report'))
    areFindings(t, unread, ['warning'])
    t.deepEqual(
      conditions.filter(word => unread[0]?.message.includes(word)),
      unknown
    )
  })
}

testWithRedis('check examines every master of a cluster', async t => {
  const { url, nodes } = await startRedisCluster(t)
  for (const { admin } of nodes) {
    await admin.config('SET', 'maxmemory', '64mb')
    await admin.config('SET', 'appendonly', 'yes')
  }
  await reportsCondition(t, url, noWarning)
  await nodes.at(-1)?.admin.config('SET', 'maxmemory-policy', 'volatile-ttl')
  await reportsCondition(t, url, 'warning evicts volatile-ttl')
})
