// Behaviour of the stores of several processes that share a Redis. Each "replica" here is a separate store in this process.
import type { Redis } from 'ioredis'
import { StoredDataError } from '#src/store/redis-errors.js'
import { eventually } from '../helpers/eventually.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { connected, lockOf, logIn, PREFIX, recordOf, refresh, save, startReplica, startReplicas } from './replicas.js'

const unreadable = { instanceOf: StoredDataError }
const waits = { kind: 'wait', loss: undefined } as const

testWithRedis('only one of two replicas gets the lock, and the other one gets the refreshed session', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url)
  const session = await logIn(owner, 'id')
  const lock = await lockOf(owner, session)
  t.deepEqual(await other.take(session, undefined), waits)
  await save(owner, lock, recordOf('id', 2))
  t.deepEqual(await other.take(session, undefined), { kind: 'newer', record: recordOf('id', 2) })
  t.deepEqual(await other.look(session), { kind: 'newer', record: recordOf('id', 2) })
})

testWithRedis('if a refresh fails, the lock is free, and all replicas wait for the pause', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url)
  const session = await logIn(owner, 'id')
  const fail = async (pauseMs: number) => {
    await owner.save(await lockOf(owner, session), { kind: 'failure', pauseMs, isDoubtful: false })
    return other.take(session, undefined)
  }
  t.is((await fail(0)).kind, 'mine')
  await other.save(await lockOf(other, session), { kind: 'failure', pauseMs: 0, isDoubtful: false })
  const answer = await fail(30_000)
  t.is(answer.kind, 'pausing')
  t.true(answer.kind === 'pausing' && answer.pauseMs > 0 && answer.pauseMs <= 30_000)
})

testWithRedis('all replicas know for how long the provider has doubted a refresh token', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  const session = await logIn(one, 'id')
  await one.save(await lockOf(one, session), { kind: 'failure', pauseMs: 0, isDoubtful: true })
  const { suspectMs } = await lockOf(two, session)
  t.true(suspectMs !== undefined && suspectMs >= 0 && suspectMs < 30_000)
})

testWithRedis('if the owner is killed, another replica gets the lock when it has ended', async t => {
  const redis = await startRedis(t)
  const [killed, survivor] = await startReplicas(t, redis.url, { times: { lockMs: 1500 } })
  const session = await logIn(killed, 'id')
  const started = performance.now()
  await lockOf(killed, session)
  await killed.close()
  t.deepEqual(await survivor.take(session, undefined), waits)
  await lockOf(survivor, session)
  const took = performance.now() - started
  t.true(took >= 1490, `${took} ms`)
})

testWithRedis('if the owner is killed in its second request, another replica goes on from the first one', async t => {
  const redis = await startRedis(t)
  const [killed, survivor] = await startReplicas(t, redis.url, { times: { lockMs: 1500 } })
  const session = await logIn(killed, 'id')
  const half = { ...recordOf('id', 2), internalExpiresAt: 1 }
  const saved = await save(killed, await lockOf(killed, session), half, true)
  t.is(saved.kind === 'saved' && saved.lock?.rev, 2)
  await killed.close()
  t.deepEqual(await survivor.take(session, undefined), { kind: 'newer', record: half })
  t.deepEqual(await survivor.take(half, undefined), waits)
  await save(survivor, await lockOf(survivor, half), recordOf('id', 3))
  t.deepEqual(await survivor.take(half, undefined), { kind: 'newer', record: recordOf('id', 3) })
})

testWithRedis('the first request of two starts the time of the lock again', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url)
  const session = await logIn(owner, 'id')
  const lock = await lockOf(owner, session)
  await redis.admin.hincrby(`${PREFIX}{id}`, 'owned', -60_000)
  await save(owner, lock, recordOf('id', 2), true)
  const [time = 0] = (await redis.admin.time()).map(Number)
  const owned = Number(await redis.admin.hget(`${PREFIX}{id}`, 'owned'))
  t.true(owned / 1000 - time > 50)
  t.deepEqual(await other.take(recordOf('id', 2), undefined), waits)
})

testWithRedis('a session is still known after the replica that stored it has been closed', async t => {
  const redis = await startRedis(t)
  const first = await startReplica(t, redis.url)
  const session = await logIn(first, 'id')
  await refresh(first, session)
  await first.close()
  const second = await startReplica(t, redis.url)
  t.deepEqual(await second.look(session), { kind: 'newer', record: recordOf('id', 2) })
})

testWithRedis('a stored session that cannot be decrypted is an error, and not a missing session', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  const session = await logIn(one, 'id')
  await refresh(one, session)
  const key = `${PREFIX}{id}:record`
  const text = (await redis.admin.get(key)) ?? ''
  const texts = {
    'a changed last character': text.slice(0, -1) + (text.endsWith('A') ? 'B' : 'A'),
    'a truncated text': text.slice(0, 40),
    'the id of another key': `${'x'.repeat(22)}${text.slice(22)}`,
    'an empty text': '',
    'plain text': JSON.stringify(recordOf('id', 2))
  }
  for (const [what, other] of Object.entries(texts)) {
    await redis.admin.set(key, other, 'KEEPTTL')
    await t.throwsAsync(two.look(session), unreadable, what)
    await t.throwsAsync(two.take(session, undefined), unreadable, what)
  }
  await redis.admin.set(key, text, 'KEEPTTL')
  t.is((await two.look(session)).kind, 'newer')
})

testWithRedis('a stored session is only accepted for its own id and revision, and with a known secret', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  const stranger = await startReplica(t, redis.url, { secret: 'another secret' })
  const [mine, yours] = [await logIn(one, 'mine'), await logIn(one, 'yours')]
  await refresh(one, await refresh(one, mine))
  await refresh(one, yours)
  const key = (id: string) => `${PREFIX}{${id}}:record`
  const [text = '', older = ''] = [await redis.admin.get(key('mine')), await redis.admin.get(key('yours'))].map(String)
  await redis.admin.set(key('yours'), text, 'KEEPTTL')
  await t.throwsAsync(two.look(yours), unreadable, 'the record of another session')
  await redis.admin.set(key('yours'), older, 'KEEPTTL')
  await redis.admin.hset(`${PREFIX}{yours}`, 'rev', 3)
  await t.throwsAsync(two.look(yours), unreadable, 'the record of another revision')
  await t.throwsAsync(stranger.look(mine), unreadable, 'another secret')
  t.is((await two.look(mine)).kind, 'newer')
})

testWithRedis('if a key has an unexpected Redis type, only requests of this session get an error', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url)
  const [entry, record] = [await logIn(replica, 'entry'), await logIn(replica, 'record')]
  await refresh(replica, record)
  await replica.close()
  const other = await startReplica(t, redis.url)
  await redis.admin.del(`${PREFIX}{entry}`, `${PREFIX}{record}:record`)
  await redis.admin.set(`${PREFIX}{entry}`, 'text')
  await redis.admin.hset(`${PREFIX}{record}:record`, 'field', 'value')
  for (const session of [entry, record]) {
    await t.throwsAsync(other.look(session), unreadable)
    await t.throwsAsync(other.take(session, undefined), unreadable)
  }
  await logIn(other, 'another')
  t.is(other.status(), 'redis')
  t.deepEqual(other.logs.entries, [])
})

testWithRedis('a lock that ends too far in the future is shortened to the longest time of a lock', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, { times: { lockMs: 500 } })
  const session = await logIn(replica, 'id')
  await redis.admin.hset(`${PREFIX}{id}`, 'owner', 'somebody', 'owned', 2 ** 50)
  t.deepEqual(await replica.take(session, undefined), waits)
  await lockOf(replica, session)
  t.deepEqual(replica.logs.entries, [])
})

testWithRedis('an owner whose lock another replica has taken gets no lock for its second request', async t => {
  const redis = await startRedis(t)
  const [late, other] = await startReplicas(t, redis.url, { times: { lockMs: 200 } })
  const session = await logIn(late, 'id')
  const lock = await lockOf(late, session)
  await lockOf(other, session)
  t.deepEqual(await save(late, lock, recordOf('id', 2), true), { kind: 'saved', lock: undefined })
  t.is((await other.take(session, undefined)).kind, 'newer')
})

testWithRedis('if two replicas have refreshed the same revision, both of them get the first session', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { times: { lockMs: 200 } })
  const session = await logIn(one, 'id')
  const lock = await lockOf(one, session)
  const second = await lockOf(two, session)
  await save(one, lock, recordOf('id', 2, 'first'))
  t.deepEqual(await save(two, second, recordOf('id', 2, 'second')), {
    kind: 'newer',
    record: recordOf('id', 2, 'first')
  })
})

testWithRedis('a refusal does not end a session that another replica has refreshed', async t => {
  const redis = await startRedis(t)
  const [late, other] = await startReplicas(t, redis.url, { times: { lockMs: 200 } })
  const session = await logIn(late, 'id')
  const lock = await lockOf(late, session)
  await refresh(other, session)
  t.deepEqual(await late.save(lock, { kind: 'ended', reason: 'refused' }), {
    kind: 'newer',
    record: recordOf('id', 2)
  })
  t.is((await other.look(session)).kind, 'newer')
})

testWithRedis('a refusal of a replica that has lost its lock does not end the session', async t => {
  const redis = await startRedis(t)
  const [late, other] = await startReplicas(t, redis.url, { times: { lockMs: 200 } })
  const session = await logIn(late, 'id')
  const lock = await lockOf(late, session)
  const newLock = await lockOf(other, session)
  t.deepEqual(await late.save(lock, { kind: 'ended', reason: 'refused' }), { kind: 'unknown' })
  t.deepEqual(await save(other, newLock, recordOf('id', 2)), { kind: 'saved', lock: undefined })
})

testWithRedis('a logout reaches the memory of every replica', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  const session = await logIn(one, 'id')
  await connected(one, two)
  t.deepEqual(await two.logOut(session), session)
  await eventually(() => one.isLoggedOut('id'))
  t.deepEqual(await two.take(session, undefined), { kind: 'out' })
})

testWithRedis('a logout with an old cookie returns the newest session, so that its token can be revoked', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  const session = await logIn(one, 'id')
  await refresh(one, session)
  t.deepEqual(await two.logOut(session), recordOf('id', 2))
})

testWithRedis("two applications that share a Redis do not see each other's sessions, logouts and pauses", async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { prefix: 'platform-auth:one:' })
  const two = await startReplica(t, redis.url, { prefix: 'platform-auth:two:' })
  await connected(one, two)
  const session = await logIn(one, 'id')
  await refresh(one, session)
  t.deepEqual(await two.look(session), { kind: 'current' })
  await one.logOut(session)
  one.pause(30_000)
  t.deepEqual(await two.look(session), { kind: 'current' })
  t.false(two.isLoggedOut('id'))
  t.is(two.pausedMs(true), 0)
})

testWithRedis('no key, value or message in Redis shows a token, and all keys expire', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await connected(one, two)
  const seen: string[] = []
  const monitor = await redis.admin.monitor()
  t.teardown(() => monitor.disconnect())
  monitor.on('monitor', (_time: string, args: string[]) => seen.push(args.join(' ')))
  const session = await logIn(one, 'id')
  const lock = await lockOf(one, session)
  await save(one, lock, recordOf('id', 2, 'secret-refresh-token'), true)
  await two.look(session)
  await two.logOut(await logIn(two, 'leaving'))
  one.pause(1000)
  await eventually(() => seen.some(line => line.startsWith('publish')))
  const keys = await redis.admin.keys('*')
  const ours = keys.filter(key => /\{(id|leaving)\}/.test(key))
  t.deepEqual(ours.toSorted(), [`${PREFIX}{id}`, `${PREFIX}{id}:record`, `${PREFIX}{leaving}`])
  for (const key of keys) {
    t.true(key.startsWith(PREFIX), key)
    // The key of the probe lives for a second.
    if (!key.endsWith('probe')) t.true((await redis.admin.pttl(key)) > 0, key)
  }
  t.true(seen.some(line => line.includes(':record')))
  t.notRegex(seen.filter(line => !line.startsWith('eval ')).join('\n'), /secret-|refresh_token/)
})

testWithRedis('a look uses one script, and a browser with the newest cookie is recorded once', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  const isSeen = async (id: string) => (await redis.admin.hget(`${PREFIX}{${id}}`, 'seen')) === '1'
  // The first call of a script also sends its text.
  await two.look(await logIn(one, 'warm'))
  await eventually(() => isSeen('warm'))
  const session = await refresh(one, await logIn(one, 'id'))
  const before = await scripts(redis.admin)
  for (let n = 0; n < 10; n++) {
    two.browserSent(session)
    t.deepEqual(await two.look(session), { kind: 'current' })
    await eventually(() => isSeen('id'))
  }
  const ttl = await redis.admin.pttl(`${PREFIX}{id}:record`)
  t.true(ttl > 0 && ttl <= 60_000, `${ttl} ms`)
  t.is((await scripts(redis.admin)) - before, 11)
})

testWithRedis('if Redis loses a lock, its owner takes the lock again, and other replicas wait', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url, { times: { settleMs: 900 } })
  const session = await logIn(owner, 'id')
  const lock = await lockOf(owner, session)
  // A replica that has just connected grants no lock and reports no loss. After its first lock it does both.
  await lockOf(other, await logIn(other, 'another'))
  await redis.admin.flushall()
  const first = await other.take(session, undefined)
  t.is(first.kind, 'wait')
  t.truthy(first.kind === 'wait' && first.loss)
  await eventually(async () => (await redis.admin.hget(`${PREFIX}{id}`, 'owner')) !== null)
  let loss = first.kind === 'wait' ? first.loss : undefined
  await eventually(async () => {
    const answer = await other.take(session, loss)
    t.is(answer.kind, 'wait')
    loss = answer.kind === 'wait' ? answer.loss : undefined
    return loss === undefined
  })
  await save(owner, lock, recordOf('id', 2))
  t.is((await other.take(session, undefined)).kind, 'newer')
})

testWithRedis('if Redis evicts the entry of a session, the replicas store what they remember', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { times: { settleMs: 500 } })
  const session = await logIn(one, 'id')
  await refresh(one, session)
  await connected(two)
  await redis.admin.del(`${PREFIX}{id}`, `${PREFIX}{id}:record`)
  let loss: string | undefined
  await eventually(async () => {
    const answer = await two.take(session, loss)
    loss = answer.kind === 'wait' ? answer.loss : undefined
    return answer.kind === 'newer'
  })
  t.deepEqual(two.newerHere(session), recordOf('id', 2))
})

testWithRedis('an old session that is stored again after a loss does not replace a newer one', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  const session = await logIn(one, 'id')
  await refresh(two, await refresh(one, session))
  await redis.admin.flushall()
  await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  // Each replica stores its sessions again when it has reconnected. The order of the replicas does not matter.
  await connected(one, two)
  for (const replica of [one, two]) {
    await eventually(async () => {
      const found = await replica.look(session)
      return found.kind === 'newer' && found.record.rev === 3
    })
  }
  t.pass()
})

async function scripts(admin: Redis): Promise<number> {
  const stats = await admin.info('commandstats')
  const calls = [...stats.matchAll(/cmdstat_(?:eval|evalsha):calls=(\d+)(?:,.*?failed_calls=(\d+))?/g)]
  return calls.reduce((sum, [, all, failed]) => sum + Number(all) - Number(failed ?? 0), 0)
}
