// While Redis cannot be used, no refresh token or code may be used, because that needs a lease. Requests with valid tokens
// continue, and no session is lost.
import { setTimeout as pause } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { type RedisServer, startRedis, testWithRedis as test } from '../helpers/redis.js'
import { startRedisWithTls } from '../helpers/redis-topologies.js'
import { startTcpProxy } from '../helpers/tcp-proxy.js'
import {
  commit,
  connected,
  find,
  finds,
  findsOver,
  isBack,
  isOver,
  isUnavailable,
  leaseFor,
  logIn,
  openWork,
  type Replica,
  recordOf,
  refresh,
  SESSION_PREFIX,
  startPair,
  startReplica,
  startReplicas,
  underLease
} from './replicas.js'

const events = ({ logs }: Replica) => logs.entries.map(({ event }) => event)

/**
 * Waits until Redis is available, and forgets what was logged until then: on a slow machine, a command of the set-up can exceed
 * its time limit, which is an outage of its own.
 */
async function settled(...replicas: readonly Replica[]): Promise<void> {
  for (const replica of replicas) {
    await eventually(() => isBack(replica))
    replica.logs.entries.length = 0
  }
}
const impatient = { isImpatient: true }

interface Trouble {
  readonly begin: (redis: RedisServer) => unknown
  readonly end: (redis: RedisServer) => unknown
  readonly reason: RegExp
  /** True if reads continue. */
  readonly reads?: boolean
}

/** A setting of Redis with which it refuses writes, and its usual value. */
const withSetting = (name: string, refusing: string, usual: string): Pick<Trouble, 'begin' | 'end' | 'reads'> => ({
  begin: redis => redis.admin.config('SET', name, refusing),
  end: redis => redis.admin.config('SET', name, usual),
  reads: true
})

const troubles: Readonly<Record<string, Trouble>> = {
  'is killed and started again': {
    begin: redis => redis.kill(),
    end: redis => redis.restart(),
    reason: /^(ECONNREFUSED|ECONNRESET|connection_lost|no_connection)$/
  },
  'stalls with its connections open': {
    begin: redis => redis.pause(),
    end: redis => redis.resume(),
    reason: /^(timeout|connection_lost)$/
  },
  'becomes a replica and is read-only': {
    begin: redis => redis.admin.replicaof('127.0.0.1', 1),
    end: redis => redis.admin.replicaof('NO', 'ONE'),
    reason: /^READONLY$/,
    reads: true
  },
  'has too few replicas': { ...withSetting('min-replicas-to-write', '1', '0'), reason: /^NOREPLICAS$/ },
  'has no memory left': { ...withSetting('maxmemory', '1', '0'), reason: /^OOM$/ },
  'revokes the rights of its user': {
    begin: redis => redis.admin.acl('SETUSER', 'server', '-@all'),
    end: redis => redis.admin.acl('SETUSER', 'server', '+@all'),
    reason: /^NOPERM$/
  }
}

for (const [what, { begin, end, reason, reads }] of Object.entries(troubles)) {
  test(`with a Redis that ${what}, no lease is granted, and sessions and logouts are still known`, async t => {
    const redis = await startRedis(t, ['--user', 'server', 'on', '>pw', '~*', '&*', '+@all'])
    const [one, two] = await startReplicas(t, redis.url.replace('//', '//server:pw@'), { isImpatient: !reads })
    const [before, leaving] = [await logIn(one, 'before'), await logIn(one, 'leaving')]
    const refreshed = await refresh(one, before)
    await connected(two)
    await one.sessions.end(await logIn(one, 'gone'))
    await eventually(() => isOver(two, 'gone'))
    await settled(one)

    await begin(redis)
    await eventually(async () => {
      t.not(await leaseFor(one, 'before'), 'granted')
      return isUnavailable(one)
    })
    t.is(await leaseFor(one, 'before'), 'redis')
    // While Redis is known to be unavailable, no read waits for the time limit of its command (2.5 s here).
    const began = performance.now()
    for (let n = 0; n < 20; n++) {
      const found = one.sessions.current({ id: `id-${n}`, rev: 0 }).then(
        ({ kind }) => kind,
        error => error.problem
      )
      t.is(await found, reads ? 'unavailable' : 'redis')
    }
    if (!reads) t.true(performance.now() - began < 15_000)
    t.deepEqual(one.sessions.newest('before'), refreshed)
    for (const { sessions } of [one, two]) t.is((await sessions.current({ id: 'gone', rev: 0 })).kind, 'over')
    await one.sessions.end(leaving)
    t.true(isOver(one, 'leaving'))
    await pause(1000)
    t.deepEqual(events(one), ['redis_unavailable'])
    t.regex(String(one.logs.entries[0]?.error_code), reason)
    t.is(one.logs.entries[0]?.level, 'warn')

    await end(redis)
    await eventually(() => isBack(one))
    await one.sessions.saved()
    t.deepEqual(events(one), ['redis_unavailable', 'redis_available'])
    await findsOver(two, leaving.id)
    const newest = await refresh(one, refreshed)
    await finds(two, before.id, newest.rev)
    t.notRegex(one.logs.lines.join(''), /pw/)
  })
}

test('with a read-only Redis, reads continue, until a new master has its address', async t => {
  const [old, next] = [await startRedis(t, ['--repl-diskless-sync-delay', '0']), await startRedis(t)]
  const address = await startTcpProxy(t, old.port)
  const replica = await startReplica(t, `redis://127.0.0.1:${address.port}`)
  const session = await logIn(replica, 'id')
  await next.admin.replicaof('127.0.0.1', old.port)
  await eventually(async () => (await next.admin.exists(`${SESSION_PREFIX}id`)) === 1)
  await settled(replica)
  await old.admin.replicaof('127.0.0.1', 1)
  // Requests try to get the lease all the time, also while the connection is probed.
  let isOver = false
  t.teardown(() => {
    isOver = true
  })
  const writing = (async () => {
    for (let n = 0; !isOver; n++) {
      await leaseFor(replica, `id-${n}`)
      await pause(10)
    }
  })()
  await eventually(() => isUnavailable(replica))
  for (let n = 0; n < 150; n++) {
    t.is((await find(replica, session)).kind, 'live')
    await pause(10)
  }
  t.deepEqual(events(replica), ['redis_unavailable'])

  await next.admin.replicaof('NO', 'ONE')
  address.connectTo(next.port)
  await eventually(() => isBack(replica))
  isOver = true
  await writing
  const refreshed = await refresh(replica, session)
  t.is(refreshed.rev, 2)
  t.deepEqual(events(replica), ['redis_unavailable', 'redis_available'])
  t.is(await old.admin.exists(`${SESSION_PREFIX}id-0`), 0)
})

test('a full Redis refuses leases, but stores results and logouts', async t => {
  const { redis, one, two } = await startPair(t, impatient)
  const ids = ['tokens', 'failure', 'over', 'leaving']
  await Promise.all(ids.map(id => logIn(one, id)))
  await connected(one, two)
  const works = await Promise.all(ids.map(id => openWork(one, id, 1)))
  await settled(one, two)
  await redis.admin.config('SET', 'maxmemory', '1')
  const store = (index: number, outcome: Parameters<typeof commit>[3]) => works[index]?.commit(outcome)

  const tokens = { kind: 'tokens', record: recordOf('tokens', 2), pauseMs: 0 } as const
  t.deepEqual(await store(0, tokens), { kind: 'live', record: tokens.record })
  t.like(await store(1, { kind: 'failure', pauseMs: 50_000, refusedAs: 'a' }), {
    why: 'provider',
    retryAfterSeconds: 50
  })
  const refused = { kind: 'over', end: { reason: 'refused' } } as const
  t.deepEqual(await store(2, refused), refused)
  t.true((await one.sessions.end({ id: 'leaving' })).isStored)
  t.deepEqual(events(one), [])

  await find(two, recordOf('tokens', 2))
  t.is(await leaseFor(two, 'tokens'), 'redis')
  t.is((await find(two, recordOf('tokens', 1))).newest?.rev, 2)
  for (const id of ['over', 'leaving']) t.is((await find(two, recordOf(id, 1))).kind, 'over')
  t.deepEqual(events(two), ['redis_unavailable'])
  await redis.admin.config('SET', 'maxmemory', '0')
  await eventually(() => isBack(two))
  await find(two, recordOf('failure', 1))
  await eventually(async () => (await leaseFor(two, 'failure')) === 'refused')
})

test('after a start, no lease is granted for the recovery time, except for logins', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { recoveryMs: 60_000 })
  await connected(one)
  // On a slow machine, the first reply may take longer than a lease may wait for its use.
  await eventually(async () => (await leaseFor(one, 'login')) === 'granted')
  const refresh = async () => t.fail() as never
  t.like(await underLease(one, recordOf('id', 1), refresh), { kind: 'unavailable', why: 'pending' })
  t.is(one.status(), 'up')
})

const refusals: Readonly<Record<string, (t: ExecutionContext) => Promise<string>>> = {
  WRONGPASS: async t =>
    (await startRedis(t, ['--requirepass', 'right-password'])).url.replace('//', '//:wrong-password@'),
  DEPTH_ZERO_SELF_SIGNED_CERT: async t => (await startRedisWithTls(t)).url
}

for (const [reason, startRefusing] of Object.entries(refusals)) {
  test(`if a connection fails with ${reason}, the log has this reason and no password`, async t => {
    const replica = await startReplica(t, await startRefusing(t), impatient)
    await eventually(() => isUnavailable(replica))
    t.is(await leaseFor(replica, 'id'), 'redis')
    t.is(replica.logs.entries[0]?.error_code, reason)
    t.notRegex(replica.logs.lines.join(''), /wrong-password/)
  })
}

test('a connection that breaks and is restored immediately loses nothing and causes no log line', async t => {
  const { redis, one, two } = await startPair(t)
  let session = await logIn(one, 'id')
  await connected(two)
  for (let n = 0; n < 5; n++) {
    const old = session
    session = await refresh(one, session)
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await finds(two, old.id, session.rev)
  }
  t.deepEqual([...events(one), ...events(two)], [])
})

test('logouts reach the memory of a replica again after its connection for messages was broken', async t => {
  const { redis, one, two } = await startPair(t)
  await connected(one, two)
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  let n = 0
  await eventually(async () => {
    await one.sessions.end({ id: `id-${++n}` })
    return isOver(two, `id-${n - 1}`)
  })
  t.is(two.status(), 'up')
})

for (const [fault, isImpatient] of [
  ['kill', false],
  ['pause', true]
] as const) {
  test(`a replica closes quickly after ${fault}() of its Redis: waiting calls end, and no lease is granted`, async t => {
    const redis = await startRedis(t)
    const replica = await startReplica(t, redis.url, { isImpatient })
    await connected(replica)
    await redis[fault]()
    const waiting = leaseFor(replica, 'id')
    const started = performance.now()
    await replica.close()
    t.true(performance.now() - started < 5000)
    t.is(await waiting, 'redis')
    t.is(await leaseFor(replica, 'id'), 'redis')
  })
}

test('one slow reply with a large session does not make others wait or count as an outage', async t => {
  const { one, two } = await startPair(t, { isImpatient: true })
  const large = { ...recordOf('large', 1), fields: { ...recordOf('large', 1).fields, token: 'x'.repeat(240_000) } }
  await commit(one, 'large', 0, { kind: 'tokens', record: large, pauseMs: 0 })
  await logIn(one, 'small')
  const reads = Array.from({ length: 100 }, () => two.sessions.current({ id: 'large', rev: 1 }))
  t.is((await two.sessions.current(recordOf('small', 1))).kind, 'live')
  await Promise.all(reads)
  t.is(two.status(), 'up')
  t.deepEqual(events(two), [])
})

test('a process whose connection for messages gets no free slot of Redis logs it once, and works without messages', async t => {
  // One connection is that of the test, and one is for the commands of the process.
  const redis = await startRedis(t, ['--maxclients', '2'])
  await redis.admin.ping()
  const replica = await startReplica(t, redis.url, { recoveryMs: 0 })
  const withoutMessages = () =>
    replica.logs.entries.filter(({ msg }) => String(msg).startsWith('This process gets no messages'))
  await eventually(() => withoutMessages().length > 0)
  await eventually(async () => (await leaseFor(replica, 'a')) === 'granted')
  t.is(withoutMessages().length, 1)
})
