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

test('memory: a result and a mark live exactly as long as was asked', async t => {
  const clock = createClock()
  const { once, result, mark, isMarked } = createMemoryCoordination(clock.now)
  await once('key', async () => ({ value: 1, keepMs: 1000 }))
  await mark('key', 1000)
  clock.advance(999)
  t.is(await result('key'), 1)
  t.true(await isMarked('key'))
  clock.advance(1)
  t.is(await result('key'), undefined)
  t.false(await isMarked('key'))
})

test('memory: a result is kept from the moment it is there, however long the work took', async t => {
  const clock = createClock()
  const { once, result } = createMemoryCoordination(clock.now)
  await once('key', async () => {
    clock.advance(5000)
    return { value: 1, keepMs: 1000 }
  })
  clock.advance(999)
  t.is(await result('key'), 1)
})
