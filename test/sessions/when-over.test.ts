// What runs for a session, such as a response of the API proxy, ends when its session is over, in every process.
import test from 'ava'
import { createOverListeners } from '#src/sessions/when-over.js'
import { createClock } from '../helpers/clock.js'
import { recordOf, underLease } from './replicas.js'
import { createSharedStore } from './setup.js'

const DAY_MS = 86_400_000

/** Stores a session at revision 1, and lets two processes watch it. `heard` has the numbers of the processes that were told. */
async function watchedByTwo({ maxLifetimeMs }: { readonly maxLifetimeMs?: number } = {}) {
  const clock = createClock()
  const shared = createSharedStore(clock, { maxLifetimeMs })
  const processes = [shared.connect(), shared.connect()] as const
  const [{ sessions: one }, { sessions: two }] = processes
  const record = { ...recordOf('a', 1), loggedInAt: clock.now() }
  await underLease({ sessions: one }, { id: 'a', rev: 0 }, async () => ({ kind: 'tokens', record, pauseMs: 0 }))
  await two.current(record)
  const heard: number[] = []
  const removes = processes.map(({ sessions }, index) => sessions.whenOver(record, () => heard.push(index + 1)))
  return { clock, one, two, record, processes, heard, remove: () => removes.map(remove => remove()) }
}

type Watched = Awaited<ReturnType<typeof watchedByTwo>>

const denial = { reason: 'denied', problem: 'not_listed', missing: [] } as const
const refused = async () => ({ kind: 'over', end: { reason: 'refused' } }) as const

const ENDS: Readonly<Record<string, (watched: Watched) => unknown>> = {
  'a logout': ({ one, record }) => one.end(record),
  'an end by the access list': ({ one, record }) =>
    underLease({ sessions: one }, record, async () => ({ kind: 'over', end: denial, isFinal: true })),
  'a refused refresh, of which the other process has read': async ({ one, two, record }) => {
    await underLease({ sessions: one }, record, refused)
    await two.current(record)
  },
  'the end of session.maxLifetime': ({ clock }) => clock.advance(DAY_MS + 500)
}

for (const [name, end] of Object.entries(ENDS)) {
  test(`what runs for a session is told once of ${name}, in both processes`, async t => {
    const watched = await watchedByTwo({ maxLifetimeMs: DAY_MS })
    watched.clock.advance(DAY_MS - 1000)
    await watched.one.current(watched.record)
    t.deepEqual(watched.heard, [])
    await end(watched)
    await watched.one.end(watched.record)
    t.deepEqual(watched.heard.toSorted(), [1, 2])
  })
}

test('what has run for longer than a minute is told, after a new connection, of an end that this process has missed', async t => {
  for (const end of [ENDS['a logout'], ENDS['an end by the access list']]) {
    const watched = await watchedByTwo()
    watched.clock.advance(61_000)
    watched.processes[1].disconnect()
    await end?.(watched)
    t.deepEqual(watched.heard, [1])
    await watched.processes[1].reconnect()
    t.deepEqual(watched.heard, [1, 2])
  }
})

const NO_ENDS: Readonly<Record<string, (watched: Watched) => unknown>> = {
  'a new revision': ({ one, record }) =>
    underLease({ sessions: one }, record, async () => ({
      kind: 'tokens',
      record: { ...record, rev: 2 },
      pauseMs: 0
    })),
  'the end of an older revision': async ({ clock, one, two, record, processes }) => {
    await underLease({ sessions: one }, record, async () => {
      processes[0].disconnect()
      return { kind: 'tokens', record: { ...record, rev: 2 }, pauseMs: 0 }
    })
    clock.advance(66_000)
    await underLease({ sessions: two }, record, refused)
    await processes[0].reconnect()
  },
  'a logout of another session': ({ one }) => one.end({ id: 'b' })
}

for (const [name, act] of Object.entries(NO_ENDS)) {
  test(`what runs for a session is not told of ${name}`, async t => {
    const watched = await watchedByTwo()
    await act(watched)
    t.false(watched.heard.includes(1))
  })
}

test('what begins when its session is over is told immediately, but not before the caller can remove its listener', async t => {
  const { one, record, remove } = await watchedByTwo()
  remove()
  await one.end(record)
  const heard: string[] = []
  one.whenOver(record, () => heard.push('kept'))
  one.whenOver(record, () => heard.push('removed'))()
  t.deepEqual(heard, [])
  await Promise.resolve()
  t.deepEqual(heard, ['kept'])
})

test('100,000 short responses leave nothing behind, and one timer serves them all', t => {
  const clock = createClock()
  const { add, ids } = createOverListeners(clock, DAY_MS)
  const removes = Array.from({ length: 100_000 }, (_, index) =>
    add({ id: `id-${index % 50_000}`, loggedInAt: clock.now() }, t.fail)
  )
  t.is([...ids()].length, 50_000)
  t.is(clock.timers().length, 1)
  for (const remove of removes) remove()
  t.is([...ids()].length, 0)
  clock.advance(1000)
  t.deepEqual(clock.timers(), [])
})

test('without session.maxLifetime, no timer runs', t => {
  const clock = createClock()
  createOverListeners(clock, Number.POSITIVE_INFINITY).add({ id: 'a', loggedInAt: 0 }, t.fail)
  t.deepEqual(clock.timers(), [])
})
