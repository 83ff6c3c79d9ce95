import test from 'ava'
import { createMemoryCoordination } from '#src/coordination/memory.js'
import { createClock } from '../helpers/clock.js'
import { coordinationContract } from './contract.js'

coordinationContract('memory', async t => {
  const clock = createClock()
  const coordination = createMemoryCoordination(clock.now)
  t.teardown(() => coordination.close())
  return { replicas: [coordination], pass: async ms => clock.advance(ms) }
})

test('memory: a result and a mark live exactly as long as requested', async t => {
  const clock = createClock()
  const { once, peek, mark, isMarked } = createMemoryCoordination(clock.now)
  await once('key', async () => ({ value: 1, keepMs: 1000 }))
  await mark('key', 1000)
  clock.advance(999)
  t.is(await peek('key'), 1)
  t.true(await isMarked('key'))
  clock.advance(1)
  t.is(await peek('key'), undefined)
  t.false(await isMarked('key'))
})

test('memory: the lifetime of a result starts when the work has finished', async t => {
  const clock = createClock()
  const { once, peek } = createMemoryCoordination(clock.now)
  await once('key', async () => {
    clock.advance(5000)
    return { value: 1, keepMs: 1000 }
  })
  clock.advance(999)
  t.is(await peek('key'), 1)
})

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

test('memory: 10,010 confirmed results do not evict unconfirmed results', async t => {
  const clock = createClock()
  const { once, peek, confirm } = createMemoryCoordination(clock.now)
  for (let n = 0; n < 5; n++) await once(`refresh:left ${n}`, async () => ({ value: n, keepMs: DAY_MS }))
  for (let n = 0; n < 10_010; n++) {
    clock.advance(2000)
    await once(`refresh:${n}`, async () => ({ value: n, keepMs: DAY_MS }))
    confirm(`refresh:${n}`, MINUTE_MS)
  }
  for (let n = 0; n < 5; n++) t.is(await peek(`refresh:left ${n}`), n)
})

test('memory: 10,001 unconfirmed results evict the oldest of them, but no confirmed result', async t => {
  const clock = createClock()
  const { once, peek, confirm } = createMemoryCoordination(clock.now)
  for (let n = 0; n < 10_001; n++) await once(`refresh:left ${n}`, async () => ({ value: n, keepMs: DAY_MS }))
  for (let n = 0; n < 30; n++) {
    await once(`refresh:${n}`, async () => ({ value: n, keepMs: DAY_MS }))
    confirm(`refresh:${n}`, MINUTE_MS)
  }
  for (let n = 0; n < 30; n++) t.is(await peek(`refresh:${n}`), n)
  // The oldest result is evicted first, because it is the least likely to be requested.
  t.is(await peek('refresh:left 0'), undefined)
  t.is(await peek('refresh:left 10000'), 10_000)
})

test('memory: logout marks live as long as requested, even if 200,001 marks of another kind are set', async t => {
  const clock = createClock()
  const { mark, isMarked } = createMemoryCoordination(clock.now)
  await mark('logout:early', DAY_MS)
  clock.advance(DAY_MS - MINUTE_MS)
  await mark('logout:late', DAY_MS)
  for (let n = 0; n < 200_001; n++) await mark(`login:${n}`, 10 * MINUTE_MS)
  t.true(await isMarked('logout:early'))
  t.true(await isMarked('logout:late'))
  t.false(await isMarked('login:0'))
  t.true(await isMarked('login:1'))
})
