// Redis slow, gone, read-only, full, empty: whatever it does, requests go on, and it is used again when it can be.
import { setTimeout as pause } from 'node:timers/promises'
import { CoordinationClosedError } from '#src/coordination/coordination.js'
import { type RedisServer, startRedis, testWithRedis } from '../helpers/redis.js'
import { IMPATIENT, type Replica, startReplica, startReplicas } from './replicas.js'
import { controlledWork, KEEP_MS, never, someoneWaits, until } from './work.js'

const isAway = (replica: Replica) => replica.status().store === 'memory (redis away)'
const isBack = (replica: Replica) => replica.status().store === 'redis'
const events = ({ logs }: Replica) => logs.entries.map(({ event }) => event)
const work = async () => ({ value: 'value', keepMs: KEEP_MS })

interface Trouble {
  readonly begin: (redis: RedisServer) => unknown
  readonly end: (redis: RedisServer) => unknown
  readonly reason: RegExp
  readonly replicaOptions?: Parameters<typeof startReplica>[2]
}

const troubles: Readonly<Record<string, Trouble>> = {
  'is killed and started again': {
    begin: redis => redis.kill(),
    end: redis => redis.restart(),
    reason: /^(ECONNREFUSED|ECONNRESET|connection lost|no connection)$/
  },
  'stands still with its connections open': {
    begin: redis => redis.pause(),
    end: redis => redis.resume(),
    reason: /^timeout$/
  },
  'holds its clients back': {
    begin: redis => redis.admin.client('PAUSE', 60_000, 'WRITE'),
    end: redis => redis.admin.client('UNPAUSE'),
    reason: /^timeout$/
  },
  'became a replica and only reads': {
    begin: redis => redis.admin.replicaof('127.0.0.1', 1),
    end: redis => redis.admin.replicaof('NO', 'ONE'),
    reason: /^READONLY$/
  },
  'has no memory left': {
    begin: redis => redis.admin.config('SET', 'maxmemory', '1'),
    end: redis => redis.admin.config('SET', 'maxmemory', '0'),
    reason: /^OOM$/
  },
  'no longer lets us in': {
    begin: async redis => {
      await redis.admin.acl('SETUSER', 'server', '-@all')
    },
    end: redis => redis.admin.acl('SETUSER', 'server', '+@all'),
    reason: /^NOPERM$/
  }
}

for (const [what, { begin, end, reason }] of Object.entries(troubles)) {
  testWithRedis(`a Redis that ${what} costs one short delay, one warning and nothing else`, async t => {
    const redis = await startRedis(t, ['--user', 'server', 'on', '>pw', '~*', '&*', '+@all'])
    const [one, two] = await startReplicas(t, redis.url.replace('//', '//server:pw@'), { timing: IMPATIENT })
    await one.once('before', work)
    t.true(isBack(one))

    await begin(redis)
    const first = await timed(() => one.once('during', work))
    t.deepEqual(first.value, { value: 'value', how: 'ran' })
    t.true(first.ms < 5000, `${first.ms} ms`)
    await until(() => isAway(one))
    const next = await timed(async () => {
      for (let n = 0; n < 100; n++) {
        t.is((await one.once(`next ${n}`, work)).how, 'ran')
        t.false(await one.isMarked(`mark ${n}`))
      }
    })
    t.true(next.ms < 1000, `${next.ms} ms`)
    t.deepEqual(await one.once('during', never), { value: 'value', how: 'kept' })
    await one.mark('ended', KEEP_MS)
    t.true(await one.isMarked('ended'))
    await pause(1000)
    t.deepEqual(events(one), ['redis_away'])
    t.regex(String(one.logs.entries[0]?.reason), reason)
    t.is(one.logs.entries[0]?.level, 40)

    await end(redis)
    await until(() => isBack(one))
    await until(() => isBack(two))
    t.deepEqual(events(one), ['redis_away', 'redis_back'])
    // What this replica did and marked alone is known to the others now.
    await until(async () => (await two.result('during')) === 'value')
    await until(() => two.isMarked('ended'))
    t.deepEqual(await two.once('during', never), { value: 'value', how: 'kept' })
    t.notRegex(one.logs.lines.join(''), /pw/)
  })
}

testWithRedis('a server starts and serves while its Redis is not there yet', async t => {
  const redis = await startRedis(t)
  await redis.kill()
  const replica = await startReplica(t, redis.url, { timing: IMPATIENT })
  const first = await timed(() => replica.once('key', work))
  t.is(first.value.how, 'ran')
  t.true(first.ms < 10_000)
  t.true(isAway(replica))
  t.deepEqual(events(replica), ['redis_away'])
  t.is(replica.logs.entries[0]?.reason, 'ECONNREFUSED')
  await redis.restart()
  await until(() => isBack(replica))
  await until(async () => (await redis.admin.keys('*:result')).length === 1)
  t.deepEqual(events(replica), ['redis_away', 'redis_back'])
})

testWithRedis('a Redis that only reads any more is noticed although nobody writes', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, { timing: { ...IMPATIENT, checkMs: 50 } })
  await replica.isMarked('warm')
  await redis.admin.replicaof('127.0.0.1', 1)
  await until(() => isAway(replica))
  t.is(replica.logs.entries[0]?.reason, 'READONLY')
})

testWithRedis('the first requests wait for the first connection, so that none acts alone', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url)
  await one.once('key', work)
  const two = await startReplica(t, redis.url)
  t.deepEqual(await two.once('key', never), { value: 'value', how: 'kept' })
  t.deepEqual(two.logs.entries, [])
})

testWithRedis('a Redis that refuses the password is named by that in the log, and the password is not', async t => {
  const redis = await startRedis(t, ['--requirepass', 'right-password'])
  const replica = await startReplica(t, redis.url.replace('//', '//:wrong-password@'), { timing: IMPATIENT })
  t.is((await replica.once('key', work)).how, 'ran')
  t.is(replica.logs.entries[0]?.reason, 'WRONGPASS')
  t.notRegex(replica.logs.lines.join(''), /wrong-password/)
})

testWithRedis('a connection that breaks and is made again at once goes unnoticed', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await one.once('key', work)
  await two.isMarked('key')
  for (let n = 0; n < 5; n++) {
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    t.deepEqual(await two.once('key', never), { value: 'value', how: 'kept' })
    await one.mark(`mark ${n}`, KEEP_MS)
    t.true(await two.isMarked(`mark ${n}`))
  }
  t.deepEqual([...events(one), ...events(two)], [])
})

testWithRedis('waiters hear of results again after their connection broke', async t => {
  const redis = await startRedis(t)
  const [owner, waiter] = await startReplicas(t, redis.url, { timing: { lockMs: 30_000 } })
  await Promise.all([owner.isMarked('warm'), waiter.isMarked('warm')])
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await until(async () => ((await redis.admin.pubsub('NUMSUB', 'platform-auth:test:done')) as unknown[])[1] === 2)
  const slow = controlledWork()
  const first = owner.once('key', slow.run)
  await slow.started
  const second = waiter.once('key', never)
  await someoneWaits(redis.admin)
  slow.finish('value')
  await first
  const { ms } = await timed(() => second)
  t.true(ms < 10_000, `${ms} ms`)
})

testWithRedis('work that is under way when Redis dies is not begun again in the same process', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, { timing: IMPATIENT })
  const slow = controlledWork()
  const first = replica.once('key', slow.run)
  await slow.started
  await redis.kill()
  await until(() => isAway(replica))
  const second = replica.once('key', never)
  slow.finish('value')
  t.deepEqual(await first, { value: 'value', how: 'ran' })
  t.deepEqual(await second, { value: 'value', how: 'joined' })
  t.deepEqual(await replica.once('key', never), { value: 'value', how: 'kept' })
})

testWithRedis('who waits on another replica when Redis dies goes on alone, and knows it', async t => {
  const redis = await startRedis(t)
  const [owner, waiter] = await startReplicas(t, redis.url, { timing: IMPATIENT })
  const slow = controlledWork()
  const first = owner.once('key', slow.run)
  await slow.started
  let wasAlone = false
  const second = waiter.once('key', async run => {
    wasAlone = run.isAlone()
    return work()
  })
  await someoneWaits(redis.admin)
  await redis.kill()
  const { value, ms } = await timed(() => second)
  t.deepEqual(value, { value: 'value', how: 'ran' })
  t.true(ms < 10_000, `${ms} ms`)
  t.true(wasAlone)
  slow.finish('late')
  await first
})

testWithRedis('who waits on another replica while Redis is restarted empty does not begin the same work', async t => {
  const redis = await startRedis(t)
  const [owner, waiter] = await startReplicas(t, redis.url, { timing: { lockMs: 20_000, extendMs: 1000 } })
  const slow = controlledWork()
  const first = owner.once('key', slow.run)
  await slow.started
  const second = waiter.once('key', never)
  await someoneWaits(redis.admin)
  await redis.restart()
  await until(() => isBack(owner) && isBack(waiter))
  await until(async () => (await redis.admin.keys('*:lock')).length === 1)
  await until(async () => ((await redis.admin.pubsub('NUMSUB', 'platform-auth:test:done')) as unknown[])[1] === 2)
  slow.finish('value')
  await first
  t.deepEqual(await second, { value: 'value', how: 'joined' })
})

testWithRedis('work begun while Redis was away holds its lock as soon as Redis is back', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { timing: IMPATIENT })
  await Promise.all([one.isMarked('warm'), two.isMarked('warm')])
  await redis.kill()
  const slow = controlledWork()
  const first = one.once('key', slow.run)
  await slow.started
  await redis.restart()
  await until(() => isBack(one) && isBack(two))
  await until(async () => (await redis.admin.keys('*:lock')).length === 1)
  const second = two.once('key', never)
  await someoneWaits(redis.admin)
  slow.finish('value')
  await first
  t.deepEqual(await second, { value: 'value', how: 'joined' })
})

testWithRedis('of what two replicas did alone, the precious result is known to both when Redis is back', async t => {
  const redis = await startRedis(t)
  const replicas = await startReplicas(t, redis.url, { timing: IMPATIENT })
  await redis.kill()
  for (const [index, replica] of replicas.entries()) {
    for (const key of ['one', 'two']) {
      const isPrecious = (key === 'one') === (index === 0)
      const value = isPrecious ? 'tokens' : 'refused'
      t.is((await replica.once(key, async () => ({ value, isPrecious, keepMs: KEEP_MS }))).value, value)
    }
  }
  await redis.restart()
  await until(() => replicas.every(isBack))
  const third = await startReplica(t, redis.url)
  for (const key of ['one', 'two']) await until(async () => (await third.result(key)) === 'tokens')
  t.pass()
})

testWithRedis('a logout that everyone knew is known again after Redis lost it', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await one.mark('ended', KEEP_MS)
  t.true(await two.isMarked('ended'))
  await one.close()
  await redis.restart()
  await until(async () => (await redis.admin.keys('*mark:ended')).length === 1)
  const third = await startReplica(t, redis.url)
  t.true(await third.isMarked('ended'))
})

testWithRedis('closing is quick while Redis stands still', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, { timing: IMPATIENT })
  await replica.isMarked('warm')
  redis.pause()
  const { ms } = await timed(() => replica.close())
  t.true(ms < 5000, `${ms} ms`)
  await t.throwsAsync(replica.once('key', never), { instanceOf: CoordinationClosedError })
})

async function timed<T>(run: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const started = performance.now()
  const value = await run()
  return { value, ms: Math.round(performance.now() - started) }
}
