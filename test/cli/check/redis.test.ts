import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import test from 'ava'
import { systemClock } from '#src/base/clock.js'
import type { Finding } from '#src/cli/check/findings.js'
import { checkRedis, redisFindings } from '#src/cli/check/redis.js'
import {
  clusterCommands,
  optionalCommands,
  type RedisCondition,
  serverCommands
} from '#src/cli/check/redis-inspection.js'
import { prefixOf } from '#src/sessions/index.js'
import { createMemoryValues } from '#src/sessions/memory-cells.js'
import { createPlaces } from '#src/sessions/places.js'
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
import { checkAt, fewAtOnce, someProvider } from './checked.js'

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

/** Returns the finding for the Redis at this address, on one line. */
async function line(redisUrl: string | undefined): Promise<string> {
  const [{ status, message, next } = { status: '', message: '', next: '' }] = await findingsOf({
    redis: { url: redisUrl }
  })
  return `${status} ${message}${next ? ` Next: ${next}` : ''}`
}

const working = 'ok Redis responds and accepts the commands that replicas need.'
const credentials = 'Next: Compare user and password in redis.url with those of Redis.'

test('check reports that no Redis is configured', async t => {
  t.is(await line(undefined), 'ok No Redis is configured. One process needs none, but several replicas need redis.url.')
  const [finding] = await findingsOf({ redis: { url: undefined }, platform: { backchannelLogout: true } })
  t.is(finding?.status, 'ok')
  t.regex(finding?.message ?? '', /After a restart, the server no longer knows which sessions a user has/)
})

const testOnLinux = process.platform === 'linux' ? test : test.skip

testOnLinux('check warns if several processes share the port without Redis', async t => {
  const cells = createMemoryValues<number>(Date.now, 300_000)
  const port = await freePort()
  for (const owner of ['one', 'two']) {
    const places = createPlaces({
      cells,
      owner,
      clock: systemClock,
      log: { warn() {} },
      hasRedis: false,
      isWorker: true
    })
    t.teardown(() => places.close())
    places.start(port)
  }
  await eventually(async () => (await countProcesses(port)) === 2)
  t.deepEqual(await findingsOf({ port, redis: { url: undefined } }), [
    {
      status: 'warning',
      message: `2 processes share port ${port}, but no Redis is configured. Two of them may use the same refresh token, and then the user is signed out.`,
      next: 'Set redis.url, or run one process.'
    }
  ])
})

testWithRedis('check accepts a working Redis, and the keys that it writes expire', async t => {
  const server = await startRedis(t)
  t.is(await line(server.url), working)
  for (const key of await server.admin.keys('*check:*')) t.not(await server.admin.pttl(key), -1)
})

const unreachable: Readonly<Record<string, readonly [redisUrl: string, says: string | RegExp]>> = {
  'a closed port': [
    'redis://127.0.0.1:1',
    'failed Redis cannot be reached: 127.0.0.1:1 refuses connections (ECONNREFUSED). Next: Check host and port in redis.url. If they are right, no server listens there or a firewall rejects the connection.'
  ],
  'a host name that does not exist': [
    'redis://no-such-host.invalid',
    /^failed Redis cannot be reached: DNS (does not know the name of|did not respond to the query for) no-such-host\.invalid:6379 /
  ],
  'a cluster in which no node responds': [
    'redis://127.0.0.1:1,127.0.0.1:2',
    'failed Redis cannot be reached, because connections to 127.0.0.1:1, 127.0.0.1:2 are closed immediately. Next: Check hosts and ports in redis.url. If these ports use TLS, redis.url must begin with rediss://, otherwise with redis://.'
  ],
  'sentinels that do not respond': [
    'redis://127.0.0.1:1?sentinel=main',
    'failed The sentinels at 127.0.0.1:1 cannot be reached, or do not know a master named "main". Next: Check their addresses and the name after sentinel= in redis.url.'
  ]
}

for (const [what, [redisUrl, says]] of Object.entries(unreachable)) {
  test(`check fails for ${what} in redis.url`, async t => {
    const found = await line(redisUrl)
    if (typeof says === 'string') t.is(found, says)
    else t.regex(found, says)
  })
}

test('check fails after the time limit for a Redis that never responds', async t => {
  const port = await listen(t, createServer())
  t.is(
    await line(`redis://127.0.0.1:${port}`),
    `failed Redis cannot be reached: 127.0.0.1:${port} did not respond within 2 s. Next: Check whether a firewall blocks the connection.`
  )
})

interface Trouble {
  readonly options?: readonly string[]
  readonly url?: (server: RedisServer) => string
  readonly line: string | RegExp
}

const troubles: Readonly<Record<string, Trouble>> = {
  'check fails for a read-only replica': {
    options: ['--replicaof', '127.0.0.1', '1'],
    line: 'failed This Redis is a read-only replica (READONLY). Next: Set redis.url to the master, or to the sentinels.'
  },
  'check fails for a Redis that requires a password': {
    options: ['--requirepass', 'hunter2'],
    line: `failed Redis requires a password (NOAUTH). ${credentials}`
  },
  'check fails for a Redis that rejects the password': {
    options: ['--requirepass', 'hunter2'],
    url: ({ port }) => `redis://:hunter3@127.0.0.1:${port}`,
    line: `failed Redis rejects the user or the password (WRONGPASS). ${credentials}`
  },
  'check fails for a single Redis if redis.url says that it is a cluster': {
    url: ({ url }) => `${url}?cluster`,
    line: /^failed Redis rejects a command as invalid \(ERR\)\. Next: Check if this Redis is a cluster/
  },
  'check fails for rediss:// at a port without TLS': {
    url: ({ port }) => `rediss://127.0.0.1:${port}`,
    line: /^failed Redis cannot be reached: 127\.0\.0\.1:\d+ did not respond within 2 s\. Next: Check whether a firewall blocks the connection, and whether this port uses TLS, which rediss:\/\/ requires\.$/
  },
  'check fails for a Redis without a free connection': {
    options: ['--maxclients', '1'],
    line: 'failed Redis has no free connection (maxclients). Next: Raise maxclients, or look for programs with many connections. Each process of this server needs two.'
  },
  'check fails for a Redis with one free connection': {
    options: ['--maxclients', '2'],
    line: /^failed Redis has no free connection \(maxclients\)\./
  },
  ...Object.fromEntries(
    ['EVAL', 'EVALSHA', 'TIME', 'HMGET', 'SUBSCRIBE'].map(name => [
      `check fails for a Redis that does not know ${name}`,
      {
        options: ['--rename-command', name, ''],
        line: `failed Redis does not know the command ${name}. It may have been renamed or disabled (rename-command). Next: Give the command its name back, or use a different Redis.`
      }
    ])
  ),
  'check fails for a Redis that is full': {
    options: ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'],
    line: 'failed Redis is full (OOM). Next: Raise maxmemory, or look for other data in this Redis. The data of platform-auth-server is small and expires by itself.'
  }
}

for (const [what, { options, url, line: expected }] of Object.entries(troubles)) {
  testWithRedis(what, async t => {
    const server = await startRedis(t, options)
    // The connection of the test counts too.
    await server.admin.ping().catch(() => {})
    const found = await line(url?.(server) ?? server.url)
    if (typeof expected === 'string') t.is(found, expected)
    else t.regex(found, expected)
  })
}

testWithRedis('check fails for a database that Redis does not have, or that the user may not select', async t => {
  const { url, port, admin } = await startRedis(t)
  t.is(await line(`${url}/15`), working)
  t.is(
    await line(`${url}/16`),
    'failed Redis refuses to select database 16 of redis.url (ERR). Next: Choose a lower database number, or increase "databases" in the configuration of Redis. A cluster has only database 0.'
  )
  await admin.acl('SETUSER', 'little', 'on', '>pass', '~*', '&*', '+@all', '-select')
  t.is(
    await line(`redis://little:pass@127.0.0.1:${port}/1`),
    'failed Redis refuses to select database 1 of redis.url (NOPERM). Next: Give the user of redis.url the right +select, or use database 0.'
  )
  t.is(await admin.dbsize(), 0)
})

testWithRedis('check names each command, key and channel that the Redis user may not use', async t => {
  const { admin, port } = await startRedis(t)
  const redisUrl = `redis://little:pass@127.0.0.1:${port}`
  const prefix = prefixOf(testConfig(someProvider))
  const lineWith = async (...rights: string[]) => {
    await admin.acl('SETUSER', 'little', 'reset', 'on', '>pass', ...rights)
    return line(redisUrl)
  }
  const failed = (shown: string, rights: string) =>
    `failed The user of redis.url lacks rights that replicas need (NOPERM): ${shown}. Next: Add ${rights} to this user. docs/run/redis.md has a complete ACL line.`
  t.is(await lineWith(...documentedRights), working)
  t.is(await lineWith(...documentedRights, '-ping'), failed('commands PING', '+ping'))
  t.is(
    await lineWith(...documentedRights, '-hset', '-subscribe', '-evalsha'),
    failed('commands EVALSHA, HSET, SUBSCRIBE', '+evalsha +hset +subscribe')
  )
  t.is(
    await lineWith(...documentedRights, 'resetkeys', '~other:*', 'resetchannels', '&other:*'),
    failed(`keys ${prefix}*; channels ${prefix}*`, `~${prefix}* &${prefix}*`)
  )
})

testWithRedis(
  'check accepts a user with only the listed rights, and warns if connections can have no name',
  async t => {
    const { admin, port } = await startRedis(t)
    const prefix = prefixOf(testConfig(someProvider))
    const commands = [...serverCommands.map(([name]) => name), 'SUBSCRIBE'].map(name => `+${name.toLowerCase()}`)
    await admin.acl('SETUSER', 'little', 'on', '>pass', `~${prefix}*`, `&${prefix}*`, ...commands)
    const [first, second] = await findingsOf({ redis: { url: `redis://little:pass@127.0.0.1:${port}` } })
    t.is(first?.status, 'ok')
    t.is(second?.status, 'warning')
    t.regex(second?.next ?? '', /^Add \+client\|setname to this user/)
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
  t.is(
    await line(url),
    'failed Redis accepts no writes, because it could not save its data to disk (MISCONF). Next: Look for the reason in the log of Redis, for example a full disk, or a folder to which Redis cannot write.'
  )
  await admin.config('SET', 'stop-writes-on-bgsave-error', 'no')
  await admin.config('SET', 'min-replicas-to-write', '1')
  t.regex(
    await line(url),
    /^failed Redis accepts no writes, because too few replicas are connected to it \(NOREPLICAS\)/
  )
})

testWithRedis('check accepts a working cluster, and fails for one of its nodes without ?cluster', async t => {
  const { url, nodes } = await startRedisCluster(t)
  t.is(await line(url), working)
  // The keys of a check are random, so all of them could be in the slots of one node.
  const single = await Promise.all([...nodes, ...nodes].map(node => line(node.url)))
  t.true(single.includes('failed This Redis is a node of a cluster (MOVED). Next: Add ?cluster to redis.url.'))
})

for (const [what, options, says] of [
  ['has expired', { days: -1 }, /: The certificate of localhost:\d+ has expired \(CERT_HAS_EXPIRED\)/],
  ['is for another host', { host: 'other.example' }, /: The certificate of localhost:\d+ is for a different name/]
] as const) {
  testWithRedis(`check fails for a Redis whose certificate ${what}`, async t => {
    const { url, certificate } = await startRedisWithTls(t, options)
    const [finding] = await findingsOf({ redis: { url, caFile: certificate } })
    t.regex(finding?.message ?? '', says)
  })
}

testWithRedis('check fails for an untrusted certificate of Redis until it is in redis.caFile', async t => {
  const { url, certificate } = await startRedisWithTls(t)
  t.regex(
    await line(url),
    /^failed Redis cannot be reached: This machine does not trust the certificate of localhost:\d+ \(DEPTH_ZERO_SELF_SIGNED_CERT\)\. Next: Set redis\.caFile/
  )
  t.is((await findingsOf({ redis: { url, caFile: certificate } }))[0]?.status, 'ok')
})

testWithRedis('check warns about a password that Redis does not ask for', async t => {
  const { port } = await startRedis(t)
  const [first, second] = await findingsOf({ redis: { url: `redis://:hunter2@127.0.0.1:${port}` } })
  t.is(first?.status, 'ok')
  t.like(second, { status: 'warning', next: 'Set requirepass, or an ACL, in Redis.' })
  const { port: closed } = await startRedis(t, ['--requirepass', 'hunter2'])
  const found = await findingsOf({ redis: { url: `redis://:hunter2@127.0.0.1:${closed}` } })
  t.false(found.some(({ message }) => message.includes('needs no password')))
})

for (const [what, start] of Object.entries({ 'a Redis': startRedisWithTls, 'a cluster': startClusterWithTls })) {
  testWithRedis(
    `redis.serverName is the name in the certificate of ${what} that is reached by its IP address`,
    async t => {
      const { url, certificate: caFile } = await start(t, { host: 'redis.example' })
      const redisUrl = url.replace('localhost', '127.0.0.1')
      const [finding] = await findingsOf({ redis: { url: redisUrl, caFile } })
      t.regex(finding?.message ?? '', /is for a different name \(ERR_TLS_CERT_ALTNAME_INVALID\)/)
      t.is(finding?.next, 'If this is the right Redis, set redis.serverName to a name that the certificate contains.')
      const serverName = 'redis.example'
      t.is((await findingsOf({ redis: { url: redisUrl, caFile, serverName } }))[0]?.message, working.slice(3))
      const other = await findingsOf({ redis: { url: redisUrl, caFile, serverName: 'other.example' } })
      t.is(other[0]?.status, 'failed')
    }
  )
}

testWithRedis('check says why Redis refuses the client certificate', async t => {
  const [stranger, expired] = [
    selfSignedCertificate({ host: 'stranger' }),
    selfSignedCertificate({ host: 'expired', days: -1 })
  ]
  const redis = await startRedisWithTls(t, { trusted: [expired.cert] })
  const { url: redisUrl, certificate: caFile, key } = redis
  const folder = await tempFolder(t, {
    'stranger.pem': stranger.cert,
    'stranger.key': stranger.key,
    'expired.pem': expired.cert,
    'expired.key': expired.key
  })
  const filesOf = (name: string) => ({ certFile: join(folder, `${name}.pem`), keyFile: join(folder, `${name}.key`) })
  const messageWith = async (files: TestSettings['redis']) =>
    (await findingsOf({ redis: { url: redisUrl, caFile, ...files } }))[0]?.message ?? ''
  t.regex(
    await messageWith({}),
    /^Redis at localhost:\d+ requires a client certificate \(ERR_SSL_[\w/]*CERTIFICATE_REQUIRED\)/
  )
  t.regex(await messageWith(filesOf('stranger')), /because it does not know who signed it \(ERR_SSL_[\w/]*UNKNOWN_CA\)/)
  t.regex(await messageWith(filesOf('expired')), /because it has expired \(ERR_SSL_[\w/]*CERTIFICATE_EXPIRED\)/)
  t.regex(await messageWith({ certFile: caFile, keyFile: key }), /^Redis responds and accepts the commands/)
})

testWithRedis('check accepts sentinels that know the master, and warns about writes without a replica', async t => {
  const { url, master } = await startRedisWithSentinel(t)
  t.is(await line(url), working)
  const warnings = async () => (await found(url)).filter(line => line.includes('min-replicas-to-write'))
  t.regex((await warnings()).join(), /^warning Redis accepts writes without a replica \(min-replicas-to-write 0\)\./)
  await master.config('SET', 'min-replicas-to-write', '1')
  t.deepEqual(await warnings(), [])
})

testWithRedis('check fails for redis:// at a port that requires TLS', async t => {
  const { url } = await startRedisWithTls(t)
  t.regex(
    await line(url.replace('rediss:', 'redis:')),
    /^failed Redis cannot be reached, because connections to localhost:\d+ are closed immediately\. Next: Check hosts and ports in redis.url\. If these ports use TLS/
  )
})

test('check does not print the password of redis.url', async t => {
  const { output, line } = await checkAt(t, { env: () => ({ REDIS_URL: 'redis://user:hunter2@127.0.0.1:1/0' }) })
  t.regex(line('redis') ?? '', /^failed redis Redis cannot be reached: 127\.0\.0\.1:1 refuses/)
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

function conditionLines(...conditions: readonly RedisCondition[]): string[] {
  return redisFindings(conditions, 'cookie').map(({ status, message }) => `${status} ${message}`)
}

const noWarning = 'ok Redis evicts nothing, has free memory, and keeps its data across a restart.'

test('a Redis with the recommended settings gets no warning', t => {
  t.deepEqual(conditionLines(good), [noWarning])
  t.deepEqual(conditionLines({ ...good, persistence: 'none', hasReplicas: true }), [noWarning])
  t.deepEqual(conditionLines(good, good, good), [noWarning])
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
    const found = conditionLines(good, { ...good, ...change }, { ...good, ...change })
    t.is(found.length, 1)
    t.regex(found[0] ?? '', says)
  })
}

test('every warning about Redis tells the operator what to do', t => {
  for (const [, change] of warnings) {
    for (const { next } of redisFindings([{ ...good, ...change }], 'cookie')) t.regex(next ?? '', /^[A-Z].*\.$/)
  }
})

/** Returns the findings about the condition of a Redis that can be reached, each on one line. */
async function found(redisUrl: string): Promise<string[]> {
  const [, ...rest] = await findingsOf({ redis: { url: redisUrl } })
  return rest.map(({ status, message }) => `${status} ${message}`)
}

const recommended = ['--maxmemory', '64mb', '--maxmemory-policy', 'noeviction', '--appendonly', 'yes']

testWithRedis('a new Redis with the recommended settings gets no warning', async t => {
  const { url } = await startRedis(t, recommended)
  t.deepEqual(await found(url), [noWarning])
})

test('with session.store redis, the warnings about lost data say that users are signed out', t => {
  const findings = redisFindings([{ ...good, persistence: 'none', evictionPolicy: 'allkeys-lru' }], 'redis')
  const saySo = findings.map(({ message }) => /signed out/.test(message))
  t.deepEqual(saySo, [true, true])
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

const forbidden: Readonly<Record<string, readonly [more: readonly string[], unknown: string]>> = {
  'INFO and CONFIG': [[], 'its eviction policy, how full it is, whether it keeps its data'],
  INFO: [['+config|get'], 'how full it is'],
  // INFO does not tell if snapshots are made.
  CONFIG: [['+info'], 'whether it keeps its data']
}

for (const [what, [more, unknown]] of Object.entries(forbidden)) {
  testWithRedis(`check warns about conditions that it cannot read because the user may not use ${what}`, async t => {
    const { port, admin } = await startRedis(t, ['--maxmemory', '64mb'])
    await admin.acl('SETUSER', 'auth', 'on', '>pass', ...documentedRights, ...more)
    const lines = (await found(`redis://auth:pass@127.0.0.1:${port}`)).filter(line => line.includes('does not report'))
    t.deepEqual(lines, [`warning Redis does not report ${unknown}.`])
  })
}

testWithRedis('check examines every master of a cluster', async t => {
  const { url, nodes } = await startRedisCluster(t)
  for (const { admin } of nodes) {
    await admin.config('SET', 'maxmemory', '64mb')
    await admin.config('SET', 'appendonly', 'yes')
  }
  t.deepEqual(await found(url), [noWarning])
  const last = nodes.at(-1)
  await last?.admin.config('SET', 'maxmemory-policy', 'volatile-ttl')
  t.regex((await found(url)).join(), /^warning Redis evicts data .*volatile-ttl/)
})
