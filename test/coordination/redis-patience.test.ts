// Before something that must not be done twice, a replica waits for a Redis that was lost just now: two that went on
// alone would both spend the same token.
import { setTimeout as pause } from 'node:timers/promises'
import { CoordinationClosedError } from '#src/coordination/coordination.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { type Replica, startReplicas } from './replicas.js'
import { controlledWork, KEEP_MS, never, someoneWaits, until } from './work.js'

const isAway = (replica: Replica) => replica.status().store === 'memory (redis away)'
const isBack = (replica: Replica) => replica.status().store === 'redis'
const work = async () => ({ value: 'value', keepMs: KEEP_MS })

// Sees soon that Redis is gone, and waits for it for long.
const PATIENT = { commandMs: 200, patienceMs: 60_000, settleMs: 3000 }

testWithRedis('what was done before Redis was restarted empty is not done again, whoever is asked', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { timing: PATIENT })
  await one.once('key', work)
  await two.isMarked('warm')
  await redis.kill()
  await until(() => isAway(one) && isAway(two))
  const during = two.once('key', never)
  await redis.restart()
  const [after] = await Promise.all([until(() => isBack(two)).then(() => two.once('other', work)), during])
  t.deepEqual(await during, { value: 'value', how: 'kept' })
  t.is(after.how, 'ran')
})

testWithRedis('work that is under way when Redis is restarted empty is not begun by another replica', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url, { timing: PATIENT })
  const slow = controlledWork()
  const first = owner.once('key', slow.run)
  await slow.started
  await other.isMarked('warm')
  await redis.kill()
  await until(() => isAway(owner) && isAway(other))
  const second = other.once('key', never)
  await redis.restart()
  await until(async () => (await redis.admin.keys('*:lock')).length === 1)
  slow.finish('value')
  await first
  t.is((await second).value, 'value')
})

testWithRedis('one replica alone cut off for a moment waits for what the others do meanwhile', async t => {
  const redis = await startRedis(t, ['--user', 'server', 'on', '>pw', '~*', '&*', '+@all'])
  const [one] = await startReplicas(t, redis.url, { timing: PATIENT })
  const [cutOff] = await startReplicas(t, redis.url.replace('//', '//server:pw@'), { timing: PATIENT })
  await cutOff.isMarked('warm')
  await redis.admin.acl('SETUSER', 'server', '-@all')
  await until(async () => {
    await cutOff.isMarked('asked')
    return isAway(cutOff)
  })
  const late = cutOff.once('key', never)
  await one.once('key', work)
  await redis.admin.acl('SETUSER', 'server', '+@all')
  t.deepEqual(await late, { value: 'value', how: 'kept' })
})

testWithRedis('patience has an end, and is not begun anew by each who asks', async t => {
  const redis = await startRedis(t)
  const [one] = await startReplicas(t, redis.url, { timing: { ...PATIENT, patienceMs: 1500 } })
  await one.isMarked('warm')
  await redis.kill()
  const killed = performance.now()
  let wasAlone = false
  await one.once('first', async run => {
    wasAlone = run.isAlone()
    return work()
  })
  t.true(performance.now() - killed >= 1000)
  t.true(wasAlone)
  const asked = performance.now()
  for (let n = 0; n < 20; n++) await one.once(`next ${n}`, work)
  t.true(performance.now() - asked < 1500)
})

testWithRedis('marks are not waited for: every request asks for one', async t => {
  const redis = await startRedis(t)
  const [one] = await startReplicas(t, redis.url, { timing: PATIENT })
  await one.isMarked('warm')
  await redis.kill()
  t.false(await one.isMarked('ended'))
  t.true(isAway(one))
})

testWithRedis('a Redis that comes and goes is not waited for without end', async t => {
  const redis = await startRedis(t)
  const [one] = await startReplicas(t, redis.url, { timing: { ...PATIENT, patienceMs: 500, settleMs: 1500 } })
  await one.isMarked('warm')
  let hasEnded = false
  const restless = (async () => {
    while (!hasEnded) {
      await redis.restart()
      await pause(500)
    }
  })()
  await pause(300)
  const started = performance.now()
  await one.once('key', work)
  t.true(performance.now() - started < 20_000)
  hasEnded = true
  await restless
})

testWithRedis('a connection that breaks while Redis keeps its memory delays nothing', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, { timing: { settleMs: 600_000, patienceMs: 600_000 } })
  await one.once('key', work)
  await two.isMarked('warm')
  for (let n = 0; n < 3; n++) {
    await redis.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    t.deepEqual(await two.once('key', never), { value: 'value', how: 'kept' })
    t.is((await two.once(`other ${n}`, work)).how, 'ran')
  }
})

testWithRedis('closing lets go of those who wait', async t => {
  const redis = await startRedis(t)
  const [one] = await startReplicas(t, redis.url, { timing: PATIENT })
  await one.isMarked('warm')
  await redis.kill()
  await until(() => isAway(one))
  const waiting = t.throwsAsync(one.once('key', never), { instanceOf: CoordinationClosedError })
  await one.close()
  await waiting
})

testWithRedis('who waits for a living owner when the end comes does not do its work again', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url)
  const slow = controlledWork()
  const first = owner.once('key', slow.run)
  await slow.started
  const second = t.throwsAsync(other.once('key', never), { instanceOf: CoordinationClosedError })
  await someoneWaits(redis.admin)
  await other.close()
  slow.finish('value')
  await Promise.all([first, second])
})

testWithRedis('who waited long for a living owner still waits for a Redis that is lost then', async t => {
  const redis = await startRedis(t)
  const timing = { ...PATIENT, patienceMs: 4000, settleMs: 1000, lockMs: 900, extendMs: 300 }
  const [owner, other] = await startReplicas(t, redis.url, { timing })
  const slow = controlledWork()
  const first = owner.once('key', slow.run)
  await slow.started
  const second = other.once('key', never)
  await pause(timing.patienceMs + timing.settleMs + 100)
  await redis.kill()
  await until(() => isAway(owner) && isAway(other))
  // By now it has been woken by the end of the lock that it saw.
  await pause(timing.lockMs + 100)
  await redis.restart()
  await until(async () => (await redis.admin.keys('*:lock')).length === 1)
  slow.finish('value')
  await first
  t.is((await second).value, 'value')
})

testWithRedis('a Redis that was emptied behind the connection is told everything again, and doubted', async t => {
  const redis = await startRedis(t)
  const [one] = await startReplicas(t, redis.url, { timing: { checkMs: 100, settleMs: 0 } })
  await one.once('key', work)
  await one.once('calm', async run => {
    t.false(run.isAlone())
    return work()
  })
  await redis.admin.flushall()
  await until(async () => (await redis.admin.keys('*:result')).length === 2)
  await one.once('other', async run => {
    t.true(run.isAlone())
    return work()
  })
})

testWithRedis('a Redis that came back empty so soon that nobody missed it is doubted', async t => {
  const redis = await startRedis(t)
  const [one] = await startReplicas(t, redis.url, { timing: { settleMs: 0 } })
  await one.isMarked('warm')
  await redis.restart()
  await one.once('key', async run => {
    t.true(run.isAlone())
    return work()
  })
  t.is(
    one.logs.find(({ event }) => event === 'redis_away'),
    undefined
  )
})
