// Behaviour of stores in several processes that share a Redis. The replica that runs a piece of work is the owner of its lock,
// and the other replicas wait for its result. Each "replica" here is a separate store in this process. `owner.ts` is a
// separate process. A checkpoint is an intermediate result that the owner saves for a replica that takes over the work.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { CoordinationError, type Run } from '#src/coordination/coordination.js'
import { createRedisScripts, NO_RUN } from '#src/coordination/redis-scripts.js'
import { eventually } from '../helpers/eventually.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { startReplica, startReplicas } from './replicas.js'
import { commandsProcessed, controlledWork, KEEP_MS, never, someoneWaits } from './work.js'

// The lease of a lock is short here. Its owner extends the lock every 250 ms.
const shortLease = { leaseMs: 1000, callMs: 500 }

testWithRedis('work that a thousand callers on four replicas request runs once', async t => {
  const redis = await startRedis(t)
  const replicas = [...(await startReplicas(t, redis.url)), ...(await startReplicas(t, redis.url))]
  let runs = 0
  const asked = Array.from({ length: 1000 }, (_, index) =>
    replicas[index % replicas.length]?.once('key', async () => {
      runs++
      await pause(100)
      return { value: { n: 1 }, keepMs: KEEP_MS }
    })
  )
  const answers = await Promise.all(asked)
  t.is(runs, 1)
  t.is(answers.filter(answer => answer?.how === 'ran').length, 1)
  t.is(answers.filter(answer => answer?.how === 'joined').length, 999)
  for (const answer of answers) t.deepEqual(answer?.value, { n: 1 })
})

testWithRedis('a waiting replica is woken up when the result is stored, and does not wait for a timer', async t => {
  const redis = await startRedis(t)
  const [owner, waiter] = await startReplicas(t, redis.url)
  const work = controlledWork()
  const first = owner.once('key', work.run)
  await work.started
  const second = waiter.once('key', never)
  await someoneWaits(redis.admin)
  work.finish('value')
  await first
  const finished = performance.now()
  t.deepEqual(await second, { value: 'value', how: 'joined' })
  t.true(performance.now() - finished < 15_000)
})

testWithRedis('if the work fails in one replica, a waiting replica runs its own work at once', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url)
  const work = controlledWork()
  const first = t.throwsAsync(owner.once('key', work.run), { message: 'no luck' })
  await work.started
  const second = other.once('key', async () => ({ value: 'luck', keepMs: KEEP_MS }))
  await someoneWaits(redis.admin)
  work.fail(new Error('no luck'))
  await first
  t.deepEqual(await second, { value: 'luck', how: 'ran' })
})

testWithRedis('work that takes longer than its lease is not started twice while the owner is alive', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url, { timing: shortLease })
  const work = controlledWork()
  const first = owner.once('key', work.run)
  await work.started
  const second = other.once('key', never)
  await pause(2.5 * shortLease.leaseMs)
  work.finish('value')
  t.is((await first).how, 'ran')
  t.deepEqual(await second, { value: 'value', how: 'joined' })
})

testWithRedis('if the owner is killed, another replica runs the work when the lock has expired', async t => {
  const redis = await startRedis(t)
  const survivor = await startReplica(t, redis.url)
  const owner = fork(new URL('owner.js', import.meta.url), [redis.url, 'key'])
  t.teardown(() => owner.kill('SIGKILL'))
  await once(owner, 'message')
  const taken = survivor.once('key', async () => ({ value: 'by the survivor', keepMs: KEEP_MS }))
  await someoneWaits(redis.admin)
  const killed = performance.now()
  owner.kill('SIGKILL')
  t.deepEqual(await taken, { value: 'by the survivor', how: 'ran' })
  const took = performance.now() - killed
  t.log(`taken over after ${Math.round(took)} ms`)
  t.true(took < 10_000)
})

testWithRedis('if the owner is killed, waiting and later callers get the checkpoint that it saved', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  const owner = fork(new URL('owner.js', import.meta.url), [redis.url, 'key', 'half way'])
  t.teardown(() => owner.kill('SIGKILL'))
  await once(owner, 'message')
  const waiting = [one.once('key', never), two.once('key', never)]
  await someoneWaits(redis.admin)
  owner.kill('SIGKILL')
  for (const { value, how } of await Promise.all(waiting))
    t.deepEqual({ value, how }, { value: 'half way', how: 'kept' })
  t.is((await two.once('key', never)).value, 'half way')
  t.is(await one.peek('key'), 'half way')
})

testWithRedis('a checkpoint is not returned while its owner is alive, and is removed after the work', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url)
  const work = controlledWork()
  const first = owner.once<unknown>('key', async run => {
    await run.checkpoint({ value: 'half way', keepMs: KEEP_MS })
    return work.run()
  })
  await work.started
  const second = other.once('key', never)
  t.is(await other.peek('key'), undefined)
  await someoneWaits(redis.admin)
  work.finish('value')
  t.is((await first).value, 'value')
  t.deepEqual(await second, { value: 'value', how: 'joined' })
  t.deepEqual(await redis.admin.keys('*:checkpoint'), [])
})

testWithRedis('a caller that does not accept the checkpoint of a killed owner runs the work again', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url)
  const owner = fork(new URL('owner.js', import.meta.url), [redis.url, 'key', 'half way'])
  await once(owner, 'message')
  owner.kill('SIGKILL')
  const answer = await replica.once('key', async () => ({ value: 'done again', keepMs: KEEP_MS }), {
    accept: value => value !== 'half way'
  })
  t.deepEqual(answer, { value: 'done again', how: 'ran' })
  t.is((await replica.once('key', never)).value, 'done again')
})

testWithRedis('a kept result is still available after the replica that stored it has been closed', async t => {
  const redis = await startRedis(t)
  const first = await startReplica(t, redis.url)
  await first.once('key', async () => ({ value: 'made before', keepMs: KEEP_MS }))
  await first.close()
  const second = await startReplica(t, redis.url)
  t.is((await second.once('key', never)).value, 'made before')
})

testWithRedis('if stored data cannot be decrypted, callers get an error, and the work does not run', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await one.once('key', async () => ({ value: 1, keepMs: KEEP_MS }))
  const name = (await redis.admin.keys('*:result'))[0] ?? ''
  const text = (await redis.admin.get(name)) ?? ''
  const unreadable = {
    'a changed last character': text.slice(0, -1) + (text.endsWith('A') ? 'B' : 'A'),
    'a truncated text': text.slice(0, 40),
    'the id of another run': `${'x'.repeat(22)}${text.slice(22)}`,
    'an empty text': '',
    'plain text': 'nonsense'
  }
  for (const [what, other] of Object.entries(unreadable)) {
    await redis.admin.set(name, other, 'KEEPTTL')
    const error = await t.throwsAsync(two.once('key', never), { instanceOf: CoordinationError }, what)
    t.is(error?.problem, 'unreadable', what)
  }
  t.is(two.logs.entries.length, 5)
  t.deepEqual(
    { event: two.logs.entries[0]?.event, level: two.logs.entries[0]?.level },
    { event: 'stored_data_unreadable', level: 50 }
  )
  await redis.admin.set(name, text, 'KEEPTTL')
  t.is((await two.once('key', never)).value, 1)
})

testWithRedis('a stored result cannot be read under another key or with another secret', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { secret: 'one secret' })
  const two = await startReplica(t, redis.url, { secret: 'another secret' })
  await one.once('mine', async () => ({ value: 'mine', keepMs: KEEP_MS }))
  const name = (await redis.admin.keys('*mine*:result'))[0] ?? ''
  await redis.admin.set(name.replace('mine', 'yours'), (await redis.admin.get(name)) ?? '', 'PX', KEEP_MS)
  await t.throwsAsync(one.once('yours', never), { message: /cannot be read/ })
  await t.throwsAsync(two.once('mine', never), { message: /cannot be read/ })
  t.is((await one.once('mine', never)).value, 'mine')
})

testWithRedis('if a key has an unexpected Redis type, only callers of this key get an error', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url)
  for (const [part, value] of [
    ['lock', 'a lock'],
    ['result', 'a result']
  ]) {
    await redis.admin.hset(`platform-auth:test:{${value}}:${part}`, 'field', 'value')
    const error = await t.throwsAsync(replica.once(value ?? '', never), { instanceOf: CoordinationError })
    t.is(error?.problem, 'unreadable')
  }
  t.is((await replica.once('other', async () => ({ value: 1, keepMs: KEEP_MS }))).how, 'ran')
  t.is(replica.status().store, 'redis')
})

testWithRedis('a lock whose expiry is far away or missing is taken over after the maximum time of a lock', async t => {
  const redis = await startRedis(t)
  const timing = { leaseMs: 200, stalledMs: 100 }
  const replica = await startReplica(t, redis.url, { timing })
  const lockOf = (key: string) => `platform-auth:test:{${key}}:lock`
  await redis.admin.set(lockOf('distant'), 'somebody', 'PX', 2 ** 40)
  await redis.admin.set(lockOf('endless'), 'somebody')
  const asked = ['distant', 'endless'].map(key => replica.once(key, async () => ({ value: 1, keepMs: KEEP_MS })))
  for (const { how } of await Promise.all(asked)) t.is(how, 'ran')
  t.deepEqual(replica.logs.entries, [])
})

testWithRedis('a waiting caller is rejected after its time limit, and a later caller gets the result', async t => {
  const redis = await startRedis(t)
  const owner = await startReplica(t, redis.url)
  const waiter = await startReplica(t, redis.url, { timing: { waitMs: 50 } })
  await waiter.isMarked('warm')
  const work = controlledWork()
  const first = owner.once('key', work.run)
  await work.started
  const error = await t.throwsAsync(waiter.once('key', never), { instanceOf: CoordinationError })
  t.is(error?.problem, 'pending')
  await t.throwsAsync(waiter.once('key', never, { canWait: false }), { message: /still running/ })
  work.finish('value')
  await first
  t.is((await waiter.once('key', never)).value, 'value')
})

testWithRedis('a replica that takes over a lock knows how long its owner may still store a result', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, { timing: { leaseMs: 5000, stalledMs: 60_000 } })
  // The state after a process stopped extending its lock.
  await redis.admin.set('platform-auth:test:{stalled}:lock', `${'o'.repeat(22)}0`, 'PX', 59_000)
  const seen: number[] = []
  const work = async (run: Run) => {
    seen.push(run.stalledOwnerMs)
    return { value: 1, keepMs: KEEP_MS }
  }
  await replica.once('stalled', work)
  await replica.once('fresh', work)
  const [stalledMs = 0, freshMs] = seen
  t.true(stalledMs > 30_000 && stalledMs <= 59_000, `${stalledMs} ms`)
  t.is(freshMs, 0)
})

testWithRedis('a checkpoint is returned with the time in which its owner may still store a result', async t => {
  const redis = await startRedis(t)
  const timing = { leaseMs: 60_000, stalledMs: 60_000 }
  const [owner, other] = await startReplicas(t, redis.url, { timing })
  const work = controlledWork()
  const first = owner.once<unknown>('key', async run => {
    await run.checkpoint({ value: 'half way', keepMs: KEEP_MS })
    return work.run()
  })
  await work.started
  const [lock = ''] = await redis.admin.keys('*:lock')
  await redis.admin.pexpire(lock, 59_000)
  const taken = await other.once<unknown>('key', never)
  t.is(taken.value, 'half way')
  t.true((taken.stalledOwnerMs ?? 0) > 30_000)
  work.finish('value')
  await first
})

testWithRedis('the owner extends its lock, and notices that another replica has taken the lock', async t => {
  const redis = await startRedis(t)
  const owner = await startReplica(t, redis.url, { timing: { leaseMs: 4000, callMs: 3500 } })
  await owner.once('key', async run => {
    await pause(600)
    await run.ensureOwned()
    const [name = ''] = await redis.admin.keys('*:lock')
    await redis.admin.set(name, `${'x'.repeat(22)}0`, 'PX', KEEP_MS)
    await pause(600)
    await t.throwsAsync(run.ensureOwned(), { instanceOf: CoordinationError })
    return { value: null, keepMs: KEEP_MS }
  })
})

testWithRedis('wake-up messages are sent only if a replica is waiting', async t => {
  const redis = await startRedis(t)
  const [owner, waiter] = await startReplicas(t, redis.url)
  const bystander = await startReplica(t, redis.url)
  await bystander.isMarked('warm')
  const work = controlledWork()
  const first = owner.once('key', work.run)
  await work.started
  const second = waiter.once('key', never)
  await someoneWaits(redis.admin)
  const [waiters = ''] = await redis.admin.keys('*:waiters')
  t.is(await redis.admin.scard(waiters), 1)
  work.finish('value')
  await Promise.all([first, second])
  t.deepEqual(await redis.admin.keys('*:waiters'), [])
  const before = await published(redis.admin)
  await owner.once('other', async () => ({ value: 1, keepMs: KEEP_MS }))
  t.is(await published(redis.admin), before)
})

testWithRedis("two applications that share a Redis do not see each other's results and marks", async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { prefix: 'platform-auth:one:' })
  const two = await startReplica(t, redis.url, { prefix: 'platform-auth:two:' })
  await one.mark('key', KEEP_MS)
  await one.once('key', async () => ({ value: 1, keepMs: KEEP_MS }))
  t.false(await two.isMarked('key'))
  t.is(await two.peek('key'), undefined)
})

testWithRedis('no key or value in Redis shows a token, and all keys expire', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { timing: { checkMs: 600_000 } })
  await Promise.all([one.isMarked('warm'), two.isMarked('warm')])
  const seen: string[] = []
  const monitor = await redis.admin.monitor()
  t.teardown(() => monitor.disconnect())
  monitor.on('monitor', (_time: string, args: string[]) => seen.push(args.join(' ')))
  const work = controlledWork()
  const first = one.once('key', work.run)
  await work.started
  const second = two.once('key', never)
  await someoneWaits(redis.admin)
  await one.mark('ended', KEEP_MS)
  const namesDuring = await redis.admin.keys('*')
  t.true(namesDuring.some(name => name.endsWith(':lock')))
  for (const name of namesDuring) t.true((await redis.admin.pttl(name)) > 0, name)
  work.finish({ refresh_token: 'secret-refresh-token', internal_token: 'secret-internal-token' })
  await Promise.all([first, second])
  const names = await redis.admin.keys('*')
  t.true(names.length >= 2)
  for (const name of names) {
    t.true(name.startsWith('platform-auth:test:'), name)
    t.true((await redis.admin.pttl(name)) > 0, name)
    t.notRegex((await redis.admin.get(name)) ?? '', /secret-/)
  }
  await eventually(() => seen.some(line => line.includes(':result')))
  t.notRegex(seen.join('\n'), /secret-|token/)
})

testWithRedis('a mark is looked up with one Redis command, and not again after it was found', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await one.mark('ended', KEEP_MS)
  await two.isMarked('other')
  const before = await commandsProcessed(redis.admin)
  for (let n = 0; n < 10; n++) await two.isMarked('other')
  const between = await commandsProcessed(redis.admin)
  t.deepEqual(difference(before, between), { pttl: 10 })
  for (let n = 0; n < 10; n++) t.true(await two.isMarked('ended'))
  t.deepEqual(difference(between, await commandsProcessed(redis.admin)), { pttl: 1 })
})

testWithRedis('work takes two calls of Redis scripts, and getting a kept result takes one', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  // When Redis does not know a script, the first call also sends its text. The warm-up makes these calls.
  await one.once('warm', async () => ({ value: 1, keepMs: KEEP_MS }))
  await two.once('warm', never)
  const before = await commandsProcessed(redis.admin)
  await Promise.all(Array.from({ length: 50 }, () => one.once('key', async () => ({ value: 1, keepMs: KEEP_MS }))))
  const between = await commandsProcessed(redis.admin)
  t.is(difference(before, between).evalsha, 2)
  await two.once('key', never)
  t.is(difference(between, await commandsProcessed(redis.admin)).evalsha, 1)
})

testWithRedis('if two replicas ran the same work, both of them get the result of the first one', async t => {
  const redis = await startRedis(t)
  const [paused, other] = await startReplicas(t, redis.url)
  const [early, late] = [controlledWork(), controlledWork()]
  const first = paused.once('key', early.run)
  await early.started
  await redis.admin.del(...(await redis.admin.keys('*:lock')))
  const second = other.once('key', late.run)
  await late.started
  early.finish('tokens')
  t.deepEqual(await first, { value: 'tokens', how: 'ran' })
  late.finish('refused')
  t.deepEqual(await second, { value: 'tokens', how: 'joined' })
})

testWithRedis('if two replicas ran the same work, the result with tokens is kept, in either order', async t => {
  const redis = await startRedis(t)
  for (const tokensAre of ['early', 'late'] as const) {
    for (const firstIs of ['early', 'late'] as const) {
      const key = `${tokensAre} ${firstIs}`
      const [one, two] = await startReplicas(t, redis.url)
      const [early, late] = [controlledWork(tokensAre === 'early'), controlledWork(tokensAre === 'late')]
      const first = one.once(key, early.run)
      await early.started
      await redis.admin.del(...(await redis.admin.keys('*:lock')))
      const second = two.once(key, late.run)
      await late.started
      for (const next of firstIs === 'early' ? ['early', 'late'] : ['late', 'early']) {
        const [work, done] = next === 'early' ? [early, first] : [late, second]
        work.finish(next)
        await done
      }
      t.is(await (await startReplica(t, redis.url)).peek(key), tokensAre, key)
      t.is(
        (await (firstIs === 'early' ? second : first)).value,
        tokensAre,
        `${key}: the run that finishes later gets the result with tokens`
      )
    }
  }
})

testWithRedis('if Redis loses a lock, the owner takes the lock again and other replicas wait', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url, { timing: { leaseMs: 400, callMs: 100 } })
  const work = controlledWork()
  const first = owner.once('key', work.run)
  await work.started
  await redis.admin.flushall()
  await eventually(async () => (await redis.admin.keys('*:lock')).length === 1)
  const second = other.once('key', never)
  await someoneWaits(redis.admin)
  work.finish('value')
  await first
  t.deepEqual(await second, { value: 'value', how: 'joined' })
})

function difference(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  const names = Object.keys(after).filter(name => after[name] !== before[name])
  return Object.fromEntries(names.map(name => [name, (after[name] ?? 0) - (before[name] ?? 0)]))
}

testWithRedis('a checkpoint is kept although the owner that saved it fails later', async t => {
  const redis = await startRedis(t)
  const [stalled, other] = await startReplicas(t, redis.url)
  const work = controlledWork()
  const first = stalled.once<unknown>('key', async run => {
    await run.checkpoint({ value: 'half', keepMs: KEEP_MS })
    return work.run()
  })
  await work.started
  await redis.admin.del(...(await redis.admin.keys('*:lock')))
  t.is((await other.once<unknown>('key', never)).value, 'half')
  work.finish('refused')
  t.is((await first).value, 'half')
  t.is((await other.once<unknown>('key', never)).value, 'half')
})

testWithRedis('an owner that lost its lock to another replica cannot extend it any more', async t => {
  const { admin } = await startRedis(t)
  const scripts = createRedisScripts('', 'channel', { leaseMs: 60_000, stalledMs: 60_000 })
  const [stalled, other] = ['s'.repeat(22), 'o'.repeat(22)] as const
  await scripts.acquire('key', stalled, NO_RUN)(admin)
  await admin.del(...(await admin.keys('*:lock')))
  t.deepEqual(await scripts.acquire('key', other, NO_RUN)(admin), { kind: 'mine', stalledOwnerMs: 0 })
  t.false(await scripts.extend('key', stalled, NO_RUN)(admin), 'while the other replica has the lock')
  await scripts.finish('key', other, NO_RUN, `${other}+tokens`, KEEP_MS)(admin)
  t.false(await scripts.extend('key', stalled, NO_RUN)(admin), 'after the other replica has finished')
  t.deepEqual(await admin.keys('*:lock'), [])
})

async function published(admin: Redis): Promise<number> {
  return (await commandsProcessed(admin)).publish ?? 0
}
