// While Redis cannot be used, no refresh token or code may be used, because that needs a lock. Requests without a lock
// continue, and no result is lost.
import { setTimeout as pause } from 'node:timers/promises'
import { CoordinationError } from '#src/coordination/coordination.js'
import { eventually } from '../helpers/eventually.js'
import { type RedisServer, startRedis, testWithRedis } from '../helpers/redis.js'
import { IMPATIENT, type Replica, startReplica, startReplicas } from './replicas.js'
import { controlledWork, KEEP_MS, never, someoneWaits } from './work.js'

const isAway = (replica: Replica) => replica.status().store === 'away'
const isBack = (replica: Replica) => replica.status().store === 'redis'
const events = ({ logs }: Replica) => logs.entries.map(({ event }) => event)
const work = async () => ({ value: 'value', keepMs: KEEP_MS })
const isUnavailable = { instanceOf: CoordinationError, message: /shared store cannot be used/ }

/** Repeats the call while Redis recovers, as a client does that got 503 with Retry-After. */
async function again<T>(ask: () => Promise<T>): Promise<T> {
  let answer: T | undefined
  await eventually(async () => {
    answer = await ask().catch((error: unknown) => {
      if (error instanceof CoordinationError) return undefined
      throw error
    })
    return answer !== undefined
  })
  return answer as T
}

interface Trouble {
  readonly begin: (redis: RedisServer) => unknown
  readonly end: (redis: RedisServer) => unknown
  readonly reason: RegExp
}

const troubles: Readonly<Record<string, Trouble>> = {
  'is killed and started again': {
    begin: redis => redis.kill(),
    end: redis => redis.restart(),
    reason: /^(ECONNREFUSED|ECONNRESET|connection lost|no connection)$/
  },
  'stalls with its connections open': {
    begin: redis => redis.pause(),
    end: redis => redis.resume(),
    reason: /^timeout$/
  },
  'delays all writes': {
    begin: redis => redis.admin.client('PAUSE', 60_000, 'WRITE'),
    end: redis => redis.admin.client('UNPAUSE'),
    reason: /^timeout$/
  },
  'becomes a replica and is read-only': {
    begin: redis => redis.admin.replicaof('127.0.0.1', 1),
    end: redis => redis.admin.replicaof('NO', 'ONE'),
    reason: /^READONLY$/
  },
  'has no memory left': {
    begin: redis => redis.admin.config('SET', 'maxmemory', '1'),
    end: redis => redis.admin.config('SET', 'maxmemory', '0'),
    reason: /^OOM$/
  },
  'revokes the rights of its user': {
    begin: async redis => {
      await redis.admin.acl('SETUSER', 'server', '-@all')
    },
    end: redis => redis.admin.acl('SETUSER', 'server', '+@all'),
    reason: /^NOPERM$/
  }
}

for (const [what, { begin, end, reason }] of Object.entries(troubles)) {
  testWithRedis(`with a Redis that ${what}, no work runs, and marks are still known`, async t => {
    const redis = await startRedis(t, ['--user', 'server', 'on', '>pw', '~*', '&*', '+@all'])
    const [one, two] = await startReplicas(t, redis.url.replace('//', '//server:pw@'), { timing: IMPATIENT })
    await one.once('before', work)
    await one.mark('logout:before', KEEP_MS, 'everyone')
    await eventually(() => two.isMarkedHere('logout:before'))

    await begin(redis)
    await t.throwsAsync(one.once('during', never), isUnavailable)
    await eventually(() => isAway(one))
    const started = performance.now()
    for (let n = 0; n < 100; n++) t.false(await one.isMarked(`mark ${n}`))
    t.true(performance.now() - started < 1000)
    t.is((await one.once('before', never)).value, 'value')
    for (const replica of [one, two]) t.true(await replica.isMarked('logout:before'))
    await one.mark('logout:during', KEEP_MS)
    await pause(1000)
    t.deepEqual(events(one), ['redis_away'])
    t.regex(String(one.logs.entries[0]?.reason), reason)
    t.is(one.logs.entries[0]?.level, 40)

    await end(redis)
    await eventually(() => isBack(one) && isBack(two))
    t.deepEqual(events(one), ['redis_away', 'redis_back'])
    await eventually(() => two.isMarked('logout:during'))
    t.is((await again(() => one.once('during', work))).how, 'ran')
    t.is((await two.once('during', never)).value, 'value')
    t.notRegex(one.logs.lines.join(''), /pw/)
  })
}

testWithRedis('with redisAway set to alone, a replica runs work on its own while Redis cannot be used', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { timing: IMPATIENT, whenAway: 'alone' })
  await two.isMarked('warm')
  await redis.kill()
  t.deepEqual((await one.once('key', work)).how, 'ran')
  t.deepEqual((await one.once('key', never)).value, 'value')
  await redis.restart()
  await eventually(() => isBack(one) && isBack(two))
  await eventually(async () => (await two.peek('key')) === 'value')
  t.pass()
})

testWithRedis('while Redis cannot be used, update() works only in a replica with redisAway set to alone', async t => {
  const redis = await startRedis(t)
  const timing = IMPATIENT
  const alone = await startReplica(t, redis.url, { timing, whenAway: 'alone' })
  const waiting = await startReplica(t, redis.url, { timing, whenAway: 'wait' })
  const tokens = async () => ({ value: 'first', keepMs: KEEP_MS, hasTokens: true })
  await alone.once('key', tokens)
  await waiting.once('key', tokens)
  await redis.kill()
  t.is(await alone.update('key', () => 'newer'), 'newer')
  t.is(await alone.update<string>('other', () => 'newer'), undefined)
  await t.throwsAsync(
    waiting.update('key', () => undefined),
    isUnavailable
  )
  t.is(await alone.peek('key'), 'newer')
  await redis.restart()
  await eventually(async () => (await waiting.peek('key')) === 'newer')
  t.is(await alone.peek('key'), 'newer')
})

testWithRedis('results and logout marks that Redis lost in a restart are published again', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { timing: { settleMs: 1000 } })
  await one.once('key', work)
  await one.mark('logout:id', KEEP_MS, 'everyone')
  await eventually(() => two.isMarkedHere('logout:id'))
  await redis.restart()
  t.is((await two.once('key', never)).value, 'value')
  const third = await startReplica(t, redis.url)
  t.true(await third.isMarked('logout:id'))
})

testWithRedis('results that Redis lost while its connections stayed open are published again', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { timing: { checkMs: 50 } })
  await one.once('key', work)
  await redis.admin.flushall()
  await eventually(async () => (await redis.admin.keys('*:result')).length === 1)
  t.is((await one.once('key', never)).value, 'value')
})

testWithRedis('if Redis restarts empty, running work is not started by another replica', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url, { timing: { settleMs: 1000 } })
  const slow = controlledWork()
  const first = owner.once('key', slow.run)
  await slow.started
  await other.isMarked('warm')
  await redis.restart()
  const second = other.once('key', never)
  await eventually(async () => (await redis.admin.keys('*:lock')).length === 1)
  slow.finish('value')
  await first
  t.is((await second).value, 'value')
})

testWithRedis('a result that could not be stored while Redis was down is stored when Redis is back', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { timing: { ...IMPATIENT, waitMs: 20_000, patienceMs: 20_000 } })
  const slow = controlledWork(true)
  const first = one.once('key', slow.run)
  await slow.started
  await redis.kill()
  await eventually(() => isAway(one) && isAway(two))
  slow.finish('tokens')
  t.deepEqual((await first).how, 'ran')
  t.is((await one.once('key', never, { canWait: false })).value, 'tokens')
  const second = two.once('key', never)
  await redis.restart()
  t.is((await second).value, 'tokens')
})

testWithRedis('after a start no lock is granted until other replicas could publish their results', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { timing: { settleMs: 60_000, waitMs: 100 } })
  t.false(await one.isMarked('warm'))
  await t.throwsAsync(one.once('key', never), isUnavailable)
  t.is(one.status().store, 'redis')
})

testWithRedis('while Redis cannot be used, a call that must not wait is rejected at once', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { timing: { settleMs: 60_000 } })
  const started = performance.now()
  await t.throwsAsync(one.once('key', never, { canWait: false }), isUnavailable)
  t.true(performance.now() - started < 10_000)
})

testWithRedis('a lock that was granted after its caller had given up is released', async t => {
  const redis = await startRedis(t)
  const timing = { ...IMPATIENT, commandMs: 300, settleMs: 100 }
  const [one, two] = await startReplicas(t, redis.url, { timing })
  await Promise.all([one.once('warm', work), two.isMarked('warm')])
  redis.pause()
  await t.throwsAsync(one.once('key', never), isUnavailable)
  redis.resume()
  await eventually(() => isBack(one) && isBack(two))
  t.is((await again(() => two.once('key', work))).how, 'ran')
})

for (const policy of ['volatile-ttl', 'allkeys-lru']) {
  testWithRedis(`a full Redis that deletes keys by the policy ${policy} is not used for locks`, async t => {
    const redis = await startRedis(t)
    const [one, two] = await startReplicas(t, redis.url, { timing: { ...IMPATIENT, checkMs: 100, settleMs: 100 } })
    await one.once('before', work)
    await two.isMarked('warm')
    const [, used = '0'] = /used_memory:(\d+)/.exec(await redis.admin.info('memory')) ?? []
    await redis.admin.config('SET', 'maxmemory-policy', policy)
    await redis.admin.config('SET', 'maxmemory', String(Number(used) + 200_000))
    await pause(300)
    await redis.admin.eval(
      `for n = 1, 400 do redis.call('SET', 'foreign:' .. n, string.rep('x', 2000), 'PX', 600000) end`,
      0
    )
    await t.throwsAsync(one.once('during', never), isUnavailable)
    await eventually(() => isAway(one))
    t.is(one.logs.entries[0]?.reason, 'evicting')
    await redis.admin.config('SET', 'maxmemory', '0')
    await eventually(() => isBack(one) && isBack(two))
    // Redis may have deleted the result. In that case the replica that stored it publishes it again.
    t.is((await again(() => two.once('before', never))).value, 'value')
    t.is((await again(() => one.once('during', work))).how, 'ran')
  })
}

testWithRedis('a replica starts while its Redis is down, and uses it when it is up', async t => {
  const redis = await startRedis(t)
  await redis.kill()
  const replica = await startReplica(t, redis.url, { timing: IMPATIENT })
  await t.throwsAsync(replica.once('key', never), isUnavailable)
  await eventually(() => isAway(replica))
  t.is(replica.logs.entries[0]?.reason, 'ECONNREFUSED')
  await redis.restart()
  await eventually(() => isBack(replica))
  t.is((await again(() => replica.once('key', work))).how, 'ran')
  t.deepEqual(events(replica), ['redis_away', 'redis_back'])
})

testWithRedis('a replica notices that Redis has become read-only, even if nothing is written', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, { timing: { ...IMPATIENT, checkMs: 50 } })
  await replica.isMarked('warm')
  await redis.admin.replicaof('127.0.0.1', 1)
  await eventually(() => isAway(replica))
  t.is(replica.logs.entries[0]?.reason, 'READONLY')
})

testWithRedis(
  'if Redis refuses the password, the log contains this reason and does not contain the password',
  async t => {
    const redis = await startRedis(t, ['--requirepass', 'right-password'])
    const replica = await startReplica(t, redis.url.replace('//', '//:wrong-password@'), { timing: IMPATIENT })
    await t.throwsAsync(replica.once('key', never), isUnavailable)
    await eventually(() => isAway(replica))
    t.is(replica.logs.entries[0]?.reason, 'WRONGPASS')
    t.notRegex(replica.logs.lines.join(''), /wrong-password/)
  }
)

testWithRedis('a connection that breaks and is restored at once causes no error and no log line', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await one.once('key', work)
  await two.isMarked('key')
  for (let n = 0; n < 5; n++) {
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    t.is((await two.once('key', never)).value, 'value')
    await one.mark(`mark ${n}`, KEEP_MS)
    t.true(await two.isMarked(`mark ${n}`))
  }
  t.deepEqual([...events(one), ...events(two)], [])
})

testWithRedis('a waiting replica gets the result although the connection for wake-up messages is broken', async t => {
  const redis = await startRedis(t)
  const [owner, waiter] = await startReplicas(t, redis.url)
  const slow = controlledWork()
  const first = owner.once('key', slow.run)
  await slow.started
  const second = waiter.once('key', never)
  await someoneWaits(redis.admin)
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  slow.finish('value')
  await first
  t.is((await second).value, 'value')
})

testWithRedis('when a replica is closed, its waiting callers are rejected, and their work does not start', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, { timing: { ...IMPATIENT, waitMs: 20_000, patienceMs: 20_000 } })
  await replica.isMarked('warm')
  await redis.kill()
  await eventually(() => isAway(replica))
  const waiting = t.throwsAsync(replica.once('key', never), { message: /stopping/ })
  await replica.close()
  await waiting
})

testWithRedis('a replica closes quickly while Redis is stalled', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, { timing: IMPATIENT })
  await replica.isMarked('warm')
  redis.pause()
  const started = performance.now()
  await replica.close()
  t.true(performance.now() - started < 5000)
  await t.throwsAsync(replica.once('key', never), { message: /stopping/ })
})
