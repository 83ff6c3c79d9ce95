// What only a store between processes can promise. Each "replica" is a store of its own; one is a process of its own.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { startReplica, startReplicas } from './replicas.js'
import { commandsProcessed, controlledWork, KEEP_MS, never, someoneWaits, until } from './work.js'

const quickLock = { lockMs: 1500, extendMs: 100 }

testWithRedis('a thousand askers on four replicas have the work done once', async t => {
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

testWithRedis('who waits on another replica is woken by the result, not by a clock', async t => {
  const redis = await startRedis(t)
  const [owner, waiter] = await startReplicas(t, redis.url, { timing: { lockMs: 30_000 } })
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

testWithRedis('when work fails, the other replicas try it themselves at once', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url, { timing: { lockMs: 30_000 } })
  const work = controlledWork()
  const first = t.throwsAsync(owner.once('key', work.run), { message: 'no luck' })
  await work.started
  const second = other.once('key', async () => ({ value: 'luck', keepMs: KEEP_MS }))
  await someoneWaits(redis.admin)
  work.fail(new Error('no luck'))
  await first
  t.deepEqual(await second, { value: 'luck', how: 'ran' })
})

testWithRedis('no work is done twice while its owner lives, however long it takes', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url, { timing: quickLock })
  const work = controlledWork()
  const first = owner.once('key', work.run)
  await work.started
  const second = other.once('key', never)
  await pause(2.5 * quickLock.lockMs)
  work.finish('value')
  t.is((await first).how, 'ran')
  t.deepEqual(await second, { value: 'value', how: 'joined' })
})

testWithRedis('the work of a killed process is taken over when its lock has ended', async t => {
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

testWithRedis('what a killed process had reached is given to those who waited for it, and to later ones', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  const owner = fork(new URL('owner.js', import.meta.url), [redis.url, 'key', 'half way'])
  t.teardown(() => owner.kill('SIGKILL'))
  await once(owner, 'message')
  const waiting = [one.once('key', never), two.once('key', never)]
  await someoneWaits(redis.admin)
  owner.kill('SIGKILL')
  for (const answer of await Promise.all(waiting)) t.deepEqual(answer, { value: 'half way', how: 'kept' })
  t.deepEqual(await two.once('key', never), { value: 'half way', how: 'kept' })
  t.is(await one.result('key'), 'half way')
})

testWithRedis('what was reached is nothing to others while its owner lives, and gone when it is done', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url)
  const work = controlledWork()
  const first = owner.once<unknown>('key', async run => {
    await run.leave({ value: 'half way', keepMs: KEEP_MS })
    return work.run()
  })
  await work.started
  const [second, look] = [other.once('key', never), other.result('key')]
  await someoneWaits(redis.admin)
  work.finish('value')
  t.is((await first).value, 'value')
  t.deepEqual(await second, { value: 'value', how: 'joined' })
  t.is(await look, 'value')
  t.deepEqual(await redis.admin.keys('*:left'), [])
})

testWithRedis('what was reached but will not do is not taken for a result', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url)
  const owner = fork(new URL('owner.js', import.meta.url), [redis.url, 'key', 'half way'])
  await once(owner, 'message')
  owner.kill('SIGKILL')
  const answer = await replica.once(
    'key',
    async () => ({ value: 'done again', keepMs: KEEP_MS }),
    value => value !== 'half way'
  )
  t.deepEqual(answer, { value: 'done again', how: 'ran' })
  t.deepEqual(await replica.once('key', never), { value: 'done again', how: 'kept' })
})

testWithRedis('a kept result outlives the process that made it', async t => {
  const redis = await startRedis(t)
  const first = await startReplica(t, redis.url)
  await first.once('key', async () => ({ value: 'made before', keepMs: KEEP_MS }))
  await first.close()
  const second = await startReplica(t, redis.url)
  t.deepEqual(await second.once('key', never), { value: 'made before', how: 'kept' })
})

testWithRedis('closing waits for work under way and leaves its result', async t => {
  const redis = await startRedis(t)
  const [closing, other] = await startReplicas(t, redis.url)
  const work = controlledWork()
  const first = closing.once('key', work.run)
  await work.started
  const closed = closing.close()
  work.finish('value')
  await Promise.all([first, closed])
  t.deepEqual(await other.once('key', never), { value: 'value', how: 'kept' })
})

testWithRedis('closing does not wait for ever', async t => {
  const redis = await startRedis(t)
  const replica = await startReplica(t, redis.url, { timing: { closeMs: 100 } })
  const work = controlledWork()
  void replica.once('key', work.run)
  await work.started
  await replica.close()
  work.finish('late')
  t.pass()
})

testWithRedis('a result that was tampered with is made again', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await one.once('key', async () => ({ value: 1, keepMs: KEEP_MS }))
  const name = (await redis.admin.keys('*:result'))[0] ?? ''
  const text = (await redis.admin.get(name)) ?? ''
  const tampered = [
    text.slice(0, -1) + (text.endsWith('A') ? 'B' : 'A'),
    text.slice(0, 40),
    `${'x'.repeat(22)}${text.slice(22)}`,
    '',
    'nonsense'
  ]
  for (const [index, other] of tampered.entries()) {
    await redis.admin.set(name, other, 'KEEPTTL')
    t.is(await two.result('key'), undefined)
    const value = `made again ${index}`
    t.deepEqual(await two.once('key', async () => ({ value, keepMs: 1 })), { value, how: 'ran' })
    await pause(10)
  }
})

testWithRedis('a result moved to another key does not open there', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await one.once('mine', async () => ({ value: 'mine', keepMs: KEEP_MS }))
  const name = (await redis.admin.keys('*mine*:result'))[0] ?? ''
  await redis.admin.set(name.replace('mine', 'yours'), (await redis.admin.get(name)) ?? '', 'PX', KEEP_MS)
  t.deepEqual(await two.once('yours', async () => ({ value: 'yours', keepMs: KEEP_MS })), {
    value: 'yours',
    how: 'ran'
  })
})

testWithRedis('a result sealed with another secret is no result', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { secret: 'one secret' })
  const two = await startReplica(t, redis.url, { secret: 'another secret' })
  await one.once('key', async () => ({ value: 1, keepMs: KEEP_MS }))
  t.deepEqual(await two.once('key', async () => ({ value: 2, keepMs: KEEP_MS })), { value: 2, how: 'ran' })
})

testWithRedis('two applications share a Redis without seeing each other', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { prefix: 'platform-auth:one:' })
  const two = await startReplica(t, redis.url, { prefix: 'platform-auth:two:' })
  await one.mark('key', KEEP_MS)
  await one.once('key', async () => ({ value: 1, keepMs: KEEP_MS }))
  t.false(await two.isMarked('key'))
  t.is(await two.result('key'), undefined)
})

testWithRedis('nothing secret is readable in Redis, and everything in it ends by itself', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
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
  await until(() => seen.some(line => line.includes(':result')))
  t.notRegex(seen.join('\n'), /secret-|token/)
})

testWithRedis('asking for a mark is one command, and a mark once seen is asked for no more', async t => {
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

testWithRedis('work is two steps at Redis, and a kept result one', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url)
  await two.isMarked('warm')
  await one.isMarked('warm')
  const before = await commandsProcessed(redis.admin)
  await Promise.all(Array.from({ length: 50 }, () => one.once('key', async () => ({ value: 1, keepMs: KEEP_MS }))))
  const between = await commandsProcessed(redis.admin)
  t.is(difference(before, between).eval, 2)
  await two.once('key', never)
  t.is(difference(between, await commandsProcessed(redis.admin)).eval, 1)
})

testWithRedis('an earlier run that lost its lock, and comes last, still has the say', async t => {
  const redis = await startRedis(t)
  const [paused, other] = await startReplicas(t, redis.url, { timing: { lockMs: 60_000 } })
  const work = controlledWork()
  const first = paused.once('key', work.run)
  await work.started
  // As if the whole process had stood still for longer than its lock lives.
  await redis.admin.del(...(await redis.admin.keys('*:lock')))
  t.is((await other.once('key', async () => ({ value: 'refused', keepMs: KEEP_MS }))).how, 'ran')
  work.finish('tokens')
  t.deepEqual(await first, { value: 'tokens', how: 'ran' })
  const third = await startReplica(t, redis.url)
  t.deepEqual(await third.once('key', never), { value: 'tokens', how: 'kept' })
})

testWithRedis('an earlier run that lost its lock, and comes first, is what the later one is given', async t => {
  const redis = await startRedis(t)
  const [paused, other] = await startReplicas(t, redis.url, { timing: { lockMs: 60_000 } })
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

testWithRedis(
  'should work have been done twice, a precious result outweighs another, whichever comes first',
  async t => {
    const redis = await startRedis(t)
    for (const preciousIs of ['early', 'late'] as const) {
      for (const firstIs of ['early', 'late'] as const) {
        const key = `${preciousIs} ${firstIs}`
        const [one, two] = await startReplicas(t, redis.url, { timing: { lockMs: 60_000, extendMs: 60_000 } })
        const [early, late] = [controlledWork(preciousIs === 'early'), controlledWork(preciousIs === 'late')]
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
        t.is(await (await startReplica(t, redis.url)).result(key), preciousIs, key)
        t.is((await (firstIs === 'early' ? second : first)).value, preciousIs, `${key}: who comes last is given it`)
      }
    }
  }
)

testWithRedis('a lock that Redis lost is taken again by its owner', async t => {
  const redis = await startRedis(t)
  const [owner, other] = await startReplicas(t, redis.url, { timing: { lockMs: 60_000, extendMs: 50 } })
  const work = controlledWork()
  const first = owner.once('key', work.run)
  await work.started
  await redis.admin.flushall()
  await until(async () => (await redis.admin.keys('*:lock')).length === 1)
  const second = other.once('key', never)
  await someoneWaits(redis.admin)
  work.finish('value')
  await first
  t.deepEqual(await second, { value: 'value', how: 'joined' })
})

testWithRedis('a run knows that it lost its lock to another', async t => {
  const redis = await startRedis(t)
  const owner = await startReplica(t, redis.url, { timing: { extendMs: 50 } })
  const seen: boolean[] = []
  await owner.once('key', async run => {
    seen.push(run.isAlone())
    const [name = ''] = await redis.admin.keys('*:lock')
    await redis.admin.set(name, 'another', 'PX', KEEP_MS)
    await until(() => run.isAlone())
    return { value: null, keepMs: 0 }
  })
  t.deepEqual(seen, [false])
})

function difference(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  const names = Object.keys(after).filter(name => after[name] !== before[name])
  return Object.fromEntries(names.map(name => [name, (after[name] ?? 0) - (before[name] ?? 0)]))
}

testWithRedis(
  'what an owner that stood still had left outweighs its own failure, when another went on from it',
  async t => {
    const redis = await startRedis(t)
    const timing = { lockMs: 200, extendMs: 60_000 }
    const [still, other] = await startReplicas(t, redis.url, { timing })
    let goOn = () => {}
    const stands = new Promise<void>(resolve => {
      goOn = resolve
    })
    const first = still.once('key', async run => {
      await run.leave({ value: 'half', keepMs: KEEP_MS })
      await stands
      return { value: 'refused', keepMs: KEEP_MS }
    })
    await until(async () => (await redis.admin.keys('*:left')).length === 1)
    t.deepEqual(await other.once('key', never), { value: 'half', how: 'kept' })
    goOn()
    t.deepEqual(await first, { value: 'half', how: 'kept' })
    t.deepEqual(await other.once('key', never), { value: 'half', how: 'kept' })
  }
)
