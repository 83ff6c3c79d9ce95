// While Redis cannot be used, no refresh token or code may be used, because that needs a lock. Requests without a lock
// continue, and no session is lost.
import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from '../helpers/eventually.js'
import { type RedisServer, startRedis, testWithRedis } from '../helpers/redis.js'
import {
  connected,
  isAway,
  isBack,
  lockOf,
  logIn,
  PREFIX,
  type Replica,
  recordOf,
  refresh,
  save,
  startReplica,
  startReplicas
} from './replicas.js'

const events = ({ logs }: Replica) => logs.entries.map(({ event }) => event)
const impatient = { isImpatient: true, times: { settleMs: 500 } }
const away = { kind: 'away' } as const

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
  testWithRedis(`with a Redis that ${what}, no lock is granted, and sessions and logouts are still known`, async t => {
    const redis = await startRedis(t, ['--user', 'server', 'on', '>pw', '~*', '&*', '+@all'])
    const [one, two] = await startReplicas(t, redis.url.replace('//', '//server:pw@'), impatient)
    const [before, leaving] = [await logIn(one, 'before'), await logIn(one, 'leaving')]
    const refreshed = await refresh(one, before)
    await connected(two)
    await one.logOut(await logIn(one, 'gone'))
    await eventually(() => two.isLoggedOut('gone'))

    await begin(redis)
    await eventually(async () => {
      t.not((await one.take(refreshed, undefined)).kind, 'mine')
      return isAway(one)
    })
    t.deepEqual(await one.take(refreshed, undefined), away)
    // A command gives up after a second. No look waits for that.
    for (let n = 0; n < 100; n++) {
      const look = one.look(recordOf(`id-${n}`, 1))
      t.deepEqual(await Promise.race([look, pause(900, 'waits for Redis')]), { kind: 'current' })
    }
    t.deepEqual(await one.look(before), { kind: 'newer', record: refreshed })
    for (const replica of [one, two]) t.deepEqual(await replica.look(recordOf('gone', 1)), { kind: 'out' })
    await one.logOut(leaving)
    await pause(1000)
    t.deepEqual(events(one), ['redis_away'])
    t.regex(String(one.logs.entries[0]?.reason), reason)
    t.is(one.logs.entries[0]?.level, 40)

    await end(redis)
    await eventually(() => isBack(one) && isBack(two))
    t.deepEqual(events(one), ['redis_away', 'redis_back'])
    await eventually(async () => (await redis.admin.hget(`${PREFIX}{leaving}`, 'state')) === 'out')
    await eventually(async () => (await two.look(leaving)).kind === 'out')
    await refresh(one, refreshed)
    await eventually(async () => (await two.look(refreshed)).kind === 'newer')
    t.notRegex(one.logs.lines.join(''), /pw/)
  })
}

testWithRedis('a full Redis refuses locks, but stores results and logouts', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { isImpatient: true })
  const sessions = await Promise.all(['tokens', 'two-steps', 'failure', 'ended', 'out'].map(id => logIn(one, id)))
  const [tokens, steps, failure, ended, out] = await Promise.all(sessions.map(session => lockOf(one, session)))
  const browser = await logIn(one, 'browser')
  await connected(one, two)
  await redis.admin.config('SET', 'maxmemory', '1')

  const refused = { kind: 'failure', pauseMs: 50_000, isDoubtful: true } as const
  t.deepEqual(await one.look(browser), { kind: 'current' })
  t.deepEqual(await save(one, tokens as never, recordOf('tokens', 2)), { kind: 'saved', lock: undefined })
  const half = await save(one, steps as never, recordOf('two-steps', 2), true)
  t.true(half.kind === 'saved' && half.lock !== undefined)
  t.deepEqual(await one.save(failure as never, refused), { kind: 'saved', lock: undefined })
  const end = { kind: 'ended', reason: 'refused' } as const
  t.deepEqual(await one.save(ended as never, end), { kind: 'saved', lock: undefined })
  t.deepEqual(await one.logOut(recordOf('out', 1)), sessions[4])
  t.deepEqual(await save(one, out as never, recordOf('out', 2)), { kind: 'out' })
  await eventually(async () => (await redis.admin.hget(`${PREFIX}{browser}`, 'seen')) === '1')
  t.deepEqual(events(one), [])

  t.deepEqual(await two.take(browser, undefined), away)
  t.is((await two.look(recordOf('tokens', 1))).kind, 'newer')
  t.is((await two.look(recordOf('two-steps', 1))).kind, 'newer')
  t.is((await two.look(recordOf('ended', 1))).kind, 'ended')
  t.is((await two.look(recordOf('out', 1))).kind, 'out')
  t.deepEqual(events(two), ['redis_away'])
  await redis.admin.config('SET', 'maxmemory', '0')
  await eventually(() => isBack(two))
  await eventually(async () => (await two.take(recordOf('failure', 1), undefined)).kind !== 'wait')
  t.is((await two.take(recordOf('failure', 1), undefined)).kind, 'pausing')
})

testWithRedis('sessions and logouts that Redis lost in a restart are stored again', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { times: { settleMs: 900 } })
  const session = await logIn(one, 'id')
  const refreshed = await refresh(one, session)
  await one.logOut(await logIn(one, 'gone'))
  await connected(two)
  await redis.restart()
  await eventually(async () => (await two.take(session, undefined)).kind === 'newer')
  t.deepEqual(two.newerHere(session), refreshed)
  const third = await startReplica(t, redis.url)
  await eventually(async () => (await third.look(recordOf('gone', 1))).kind === 'out')
})

for (const part of ['entry', 'record'] as const) {
  testWithRedis(`if Redis has deleted the ${part} of a session, no replica uses its old refresh token`, async t => {
    const redis = await startRedis(t)
    const [one, two] = await startReplicas(t, redis.url, { times: { settleMs: 500 } })
    const session = await logIn(one, 'id')
    await refresh(one, session)
    await connected(two)
    await redis.admin.del(part === 'entry' ? `${PREFIX}{id}` : `${PREFIX}{id}:record`)
    let loss: string | undefined
    await eventually(async () => {
      const answer = await two.take(session, loss)
      t.true(answer.kind === 'wait' || answer.kind === 'newer', answer.kind)
      loss = answer.kind === 'wait' ? answer.loss : undefined
      return answer.kind === 'newer'
    })
    t.deepEqual(events(two), [])
  })
}

testWithRedis('if Redis restarts empty, a session in a refresh is not refreshed by another replica', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url, { times: { settleMs: 900 } })
  const session = await logIn(owner, 'id')
  const lock = await lockOf(owner, session)
  await connected(other)
  await redis.restart()
  await eventually(async () => {
    t.not((await other.take(session, undefined)).kind, 'mine')
    return (await redis.admin.hget(`${PREFIX}{id}`, 'owner')) !== null
  })
  await eventually(async () => (await redis.admin.hget(`${PREFIX}{id}`, 'settled')) !== null || isBack(other))
  t.is((await other.take(session, undefined)).kind, 'wait')
  await save(owner, lock, recordOf('id', 2))
  await eventually(async () => (await other.take(session, undefined)).kind === 'newer')
  t.false(await owner.mayUse(lock), 'a lock from before the restart is not used to send another token')
})

testWithRedis('a session that could not be stored while Redis was down is stored when Redis is back', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, impatient)
  const session = await logIn(one, 'id')
  const lock = await lockOf(one, session)
  await connected(two)
  await redis.kill()
  await eventually(async () => {
    await Promise.all([one, two].map(replica => replica.look(recordOf('nobody', 1))))
    return isAway(one) && isAway(two)
  })
  t.deepEqual(await save(one, lock, recordOf('id', 2)), { kind: 'unknown' })
  t.deepEqual(await one.look(session), { kind: 'newer', record: recordOf('id', 2) })
  t.deepEqual(await two.take(session, undefined), away)
  await redis.restart()
  await eventually(async () => (await two.look(session)).kind === 'newer')
  t.deepEqual(two.newerHere(session), recordOf('id', 2))
})

testWithRedis('after a start no lock is granted until other replicas could store their sessions', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { times: { settleMs: 10_000 } })
  await connected(one)
  const started = performance.now()
  t.deepEqual(await one.take({ id: 'id', rev: 0 }, undefined), { kind: 'wait', loss: undefined })
  t.true(performance.now() - started < 10_000)
  t.is(one.status(), 'redis')
})

testWithRedis('a lock whose reply was lost goes to the same replica again, and ends for all others', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { isImpatient: true, times: { settleMs: 100, lockMs: 5000 } })
  const [first, second] = [await logIn(one, 'first'), await logIn(one, 'second')]
  await connected(two)
  redis.pause()
  const taken = await Promise.all([first, second].map(session => one.take(session, undefined)))
  t.deepEqual(taken, [away, away])
  redis.resume()
  await eventually(() => isBack(one) && isBack(two))
  await lockOf(one, first)
  await lockOf(two, second)
  t.pass()
})

testWithRedis('a replica starts while its Redis is down, and uses it when it is up', async t => {
  const redis = await startRedis(t)
  await redis.kill()
  const replica = await startReplica(t, redis.url, impatient)
  await eventually(() => isAway(replica))
  t.deepEqual(await replica.take({ id: 'id', rev: 0 }, undefined), away)
  t.is(replica.logs.entries[0]?.reason, 'ECONNREFUSED')
  await redis.restart()
  await eventually(() => isBack(replica))
  await logIn(replica, 'id')
  t.deepEqual(events(replica), ['redis_away', 'redis_back'])
})

testWithRedis(
  'if Redis refuses the password, the log contains this reason and does not contain the password',
  async t => {
    const redis = await startRedis(t, ['--requirepass', 'right-password'])
    const replica = await startReplica(t, redis.url.replace('//', '//:wrong-password@'), impatient)
    await eventually(() => isAway(replica))
    t.deepEqual(await replica.take({ id: 'id', rev: 0 }, undefined), away)
    t.is(replica.logs.entries[0]?.reason, 'WRONGPASS')
    t.notRegex(replica.logs.lines.join(''), /wrong-password/)
  }
)

testWithRedis('a connection that breaks and is restored at once loses nothing and causes no log line', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  let session = await logIn(one, 'id')
  await connected(two)
  for (let n = 0; n < 5; n++) {
    const old = session
    session = await refresh(one, session)
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await eventually(async () => (await two.take(old, undefined)).kind === 'newer')
    t.deepEqual(two.newerHere(old), session)
  }
  t.deepEqual([...events(one), ...events(two)], [])
})

testWithRedis('logouts reach the memory of a replica again after its connection for messages was broken', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await connected(one, two)
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  let n = 0
  await eventually(async () => {
    await one.logOut(recordOf(`id-${++n}`, 1))
    return two.isLoggedOut(`id-${n - 1}`)
  })
  t.is(two.status(), 'redis')
})

testWithRedis('when a replica is closed, waiting calls end, and no lock is granted', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url)
  await connected(replica)
  await redis.kill()
  const waiting = replica.take({ id: 'id', rev: 0 }, undefined)
  await replica.close()
  t.not((await waiting).kind, 'mine')
  t.not((await replica.take({ id: 'id', rev: 0 }, undefined)).kind, 'mine')
})

testWithRedis('a replica closes quickly while Redis is stalled', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, impatient)
  await connected(replica)
  redis.pause()
  const started = performance.now()
  await replica.close()
  t.true(performance.now() - started < 5000)
})
