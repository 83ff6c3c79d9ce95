import test from 'ava'
import { wait } from '#src/base/clock.js'
import { type Cells, StoreUnavailableError } from '#src/sessions/cells.js'
import { createSessionStore } from '#src/sessions/store.js'
import { createClock } from '../helpers/clock.js'
import { recordOf } from './replicas.js'
import { createSharedStore, type SessionCells } from './setup.js'

/** A process that remembers 30 sessions, and a Redis that has lost them. The next `failures` commands fail. */
function setUp() {
  const clock = createClock()
  const { cells } = createSharedStore(clock)
  let failures = 0
  let commands = 0
  let roundTripMs = 0
  const swapped: string[] = []
  const command = (name: 'read' | 'swap') =>
    (async (...parameters: Parameters<SessionCells[typeof name]>) => {
      commands++
      if (name === 'swap') swapped.push((parameters[0] as { id: string }).id)
      if (roundTripMs > 0) await wait(clock, roundTripMs)
      if (failures > 0 && failures--) throw new StoreUnavailableError('redis')
      return (cells[name] as (...args: unknown[]) => unknown)(...parameters)
    }) as never
  const store = createSessionStore({
    cells: { now: cells.now, read: command('read'), swap: command('swap') } satisfies Cells<
      unknown,
      never
    > as SessionCells,
    clock,
    me: () => ({ owner: 'me' }),
    recoveryMs: 2000,
    connectedAt: () => 0,
    publish: async () => {},
    lifetimeMs: 86_400_000
  })
  const ids = Array.from({ length: 30 }, (_, index) => `id-${index}`)
  for (const id of ids) store.note(recordOf(id, 1))
  return {
    clock,
    store,
    cells,
    fail: (count: number) => {
      failures = count
    },
    commands: () => commands,
    restoredIds: () => swapped,
    moveRedisAway(ms: number) {
      roundTripMs = ms
    },
    stored: async () =>
      (await Promise.all(ids.map(id => cells.read({ id }, false)))).filter(({ content }) => content).length
  }
}

test('all sessions are restored even if each of the first commands takes too long', async t => {
  const { clock, store, fail, stored } = setUp()
  fail(15)
  await clock.runUntilSettled(store.restoreAll())
  t.is(await stored(), 30)
})

test('a later connection restores everything again, so the attempts of an earlier one end', async t => {
  const { clock, store, fail, commands, stored } = setUp()
  fail(1000)
  const earlier = store.restoreAll()
  await new Promise(resolve => setImmediate(resolve))
  fail(0)
  await store.restoreAll()
  t.is(await stored(), 30)
  const sent = commands()
  await clock.runUntilSettled(earlier)
  t.is(commands(), sent)
})

/** The round trip at the start, and the round trip after 60 ms. */
const distances: Readonly<Record<string, readonly [number, number]>> = {
  'at a Redis that is 80 ms away': [80, 80],
  'although Redis becomes slower': [20, 150]
}

for (const [where, [firstMs, laterMs]] of Object.entries(distances)) {
  test(`30 sessions are restored within the recovery time ${where}`, async t => {
    const { clock, store, moveRedisAway, stored } = setUp()
    moveRedisAway(firstMs)
    clock.after(60, () => moveRedisAway(laterMs))
    const began = clock.now()
    await clock.runUntilSettled(store.restoreAll())
    const tookMs = clock.now() - began
    t.true(tookMs < 1000, `${tookMs} ms`)
    moveRedisAway(0)
    t.is(await stored(), 30)
  })
}

test('the sessions of which a process learned last are restored first, because Redis loses the last writes', async t => {
  const { clock, store, moveRedisAway, restoredIds } = setUp()
  moveRedisAway(80)
  await clock.runUntilSettled(store.restoreAll())
  const newestFirst = Array.from({ length: 30 }, (_, index) => `id-${29 - index}`)
  t.deepEqual(restoredIds(), newestFirst)
})

test('a lease that was granted but not used is released at the end of the work, so it does not block the session', async t => {
  const { clock, store, cells } = setUp()
  await store.restoreAll()
  clock.advanceSeconds(10)
  const acquired = await store.acquire({ id: 'id-0' })
  const lease = async () => (await cells.read({ id: 'id-0' }, false)).content?.entry.lease
  t.truthy(await lease())
  if (acquired.kind === 'granted') acquired.lease.giveUp()
  await clock.runUntilSettled(store.saved())
  t.is(await lease(), undefined)
})

test('a lease is not used if another process reports data loss while the lease is being requested', async t => {
  for (const [kind, isFresh] of [
    ['lost', false],
    ['pause', true]
  ] as const) {
    const { clock, store, moveRedisAway } = setUp()
    await store.restoreAll()
    clock.advanceSeconds(10)
    moveRedisAway(100)
    const acquiring = store.acquire({ id: 'id-0' })
    store.receive(kind === 'lost' ? { kind, id: 'id-0', rev: 1, from: 'other' } : { kind, ms: 1 })
    const acquired = await clock.runUntilSettled(acquiring)
    t.is(acquired.kind === 'granted' && acquired.lease.isFresh(), isFresh, kind)
  }
})

test('a store that is closed leaves no timer behind, so that its process can end', async t => {
  const { clock, store, fail } = setUp()
  clock.advance(2000)
  fail(1000)
  const restored = store.restoreAll()
  await t.throwsAsync(store.acquire({ id: 'id-0' }))
  await new Promise(resolve => setImmediate(resolve))
  t.is(clock.timers().length, 2)
  store.close()
  await Promise.all([restored, store.saved()])
  t.deepEqual(clock.timers(), [])
})
