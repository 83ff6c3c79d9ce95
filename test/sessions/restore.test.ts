import test from 'ava'
import { wait } from '#src/base/clock.js'
import { type Cells, StoreUnavailableError } from '#src/sessions/cells.js'
import { createSessions } from '#src/sessions/create-sessions.js'
import { createProcessMemory } from '#src/sessions/memory.js'
import { createClock } from '../helpers/clock.js'
import { recordOf, underLease } from './replicas.js'
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
  const memory = createProcessMemory(clock, 86_400_000)
  const sessions = createSessions({
    cells: { now: cells.now, read: command('read'), swap: command('swap') } satisfies Cells<
      unknown,
      never
    > as SessionCells,
    clock,
    me: () => ({ owner: 'me' }),
    hostSlots: { isDead: async () => false },
    recoveryMs: 2000,
    connectedAt: () => 0,
    publish: async () => {},
    revoke() {},
    lifetimeMs: 86_400_000,
    memory
  })
  const ids = Array.from({ length: 30 }, (_, index) => `id-${index}`)
  for (const id of ids) memory.note(recordOf(id, 1))
  return {
    clock,
    sessions,
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
  const { clock, sessions, fail, stored } = setUp()
  fail(15)
  await clock.runUntilSettled(sessions.restoreAll())
  t.is(await stored(), 30)
})

test('a later connection restores everything again, so the attempts of an earlier one end', async t => {
  const { clock, sessions, fail, commands, stored } = setUp()
  fail(1000)
  const earlier = sessions.restoreAll()
  await new Promise(resolve => setImmediate(resolve))
  fail(0)
  await sessions.restoreAll()
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
    const { clock, sessions, moveRedisAway, stored } = setUp()
    moveRedisAway(firstMs)
    clock.after(60, () => moveRedisAway(laterMs))
    const began = clock.now()
    await clock.runUntilSettled(sessions.restoreAll())
    const tookMs = clock.now() - began
    t.true(tookMs < 1000, `${tookMs} ms`)
    moveRedisAway(0)
    t.is(await stored(), 30)
  })
}

test('the sessions of which a process learned last are restored first, because Redis loses the last writes', async t => {
  const { clock, sessions, moveRedisAway, restoredIds } = setUp()
  moveRedisAway(80)
  await clock.runUntilSettled(sessions.restoreAll())
  const newestFirst = Array.from({ length: 30 }, (_, index) => `id-${29 - index}`)
  t.deepEqual(restoredIds(), newestFirst)
})

test('a lease that was granted too late is released, and another one is acquired', async t => {
  const { clock, sessions, cells, moveRedisAway } = setUp()
  await sessions.restoreAll()
  clock.advanceSeconds(10)
  moveRedisAway(1000)
  clock.after(1500, () => moveRedisAway(10))
  const lease = async () => (await cells.read({ id: 'id-0' }, false)).content?.entry.lease
  const work = async () => {
    t.truthy(await lease())
    return { kind: 'failure', pauseMs: 0 } as const
  }
  const began = clock.now()
  await clock.runUntilSettled(underLease({ sessions }, recordOf('id-0', 1), work, true))
  t.true(clock.now() - began > 1000)
  t.is(await lease(), undefined)
})

test('if the work under a lease fails unexpectedly, its error is thrown, and the lease is released', async t => {
  const { clock, sessions, cells } = setUp()
  await sessions.restoreAll()
  clock.advanceSeconds(10)
  const error = new Error('odd')
  const odd = async () => {
    throw error
  }
  const finish = async () => ({ kind: 'unfinished', finish: odd }) as const
  for (const work of [odd, finish]) {
    t.is(await t.throwsAsync(underLease({ sessions }, recordOf('id-0', 1), work)), error)
    await clock.runUntilSettled(sessions.saved())
    t.is((await cells.read({ id: 'id-0' }, false)).content?.entry.lease, undefined)
  }
})

test('no token is sent if another process reports data loss while the lease is being requested', async t => {
  for (const kind of ['lost', 'pause'] as const) {
    const { clock, sessions, moveRedisAway } = setUp()
    await sessions.restoreAll()
    clock.advanceSeconds(10)
    moveRedisAway(100)
    const asked = clock.now()
    let sentAfterMs = 0
    const work = async () => {
      sentAfterMs = clock.now() - asked
      return { kind: 'failure', pauseMs: 0 } as const
    }
    const settled = underLease({ sessions }, recordOf('id-0', 1), work, true)
    sessions.receive(kind === 'lost' ? { kind, id: 'id-0', rev: 1, from: 'other' } : { kind, ms: 0 })
    await clock.runUntilSettled(settled)
    t.is(sentAfterMs > 100, kind === 'lost', `${kind}: ${sentAfterMs} ms`)
  }
})

test('a store that is closed leaves no timer behind, so that its process can end', async t => {
  const { clock, sessions, fail } = setUp()
  clock.advance(2000)
  fail(1000)
  const restored = sessions.restoreAll()
  await t.throwsAsync(underLease({ sessions }, recordOf('id-0', 1), async () => t.fail() as never))
  await new Promise(resolve => setImmediate(resolve))
  t.is(clock.timers().length, 2)
  sessions.close()
  await Promise.all([restored, sessions.saved()])
  t.deepEqual(clock.timers(), [])
})
