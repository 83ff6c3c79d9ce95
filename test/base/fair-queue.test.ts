import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { createFairQueue, QueueError, type QueueLimits, type Turn } from '#src/base/fair-queue.js'
import { QUEUE_LIMITS } from '#src/web/proxy/forward.js'

const patient = 60_000
const [full, late] = (['full', 'timeout'] as const).map(reason => ({
  instanceOf: QueueError,
  message: new QueueError(reason).message
}))

/** Starts a queue in which each name is a session of another user. `ana/2` is the second session of `ana`. */
function start(limits: Partial<QueueLimits> = {}) {
  const queue = createFairQueue({ inProgress: 100, waiting: 1, slots: 2, ...limits })
  const enter = (session: string, more: Partial<Turn['call']> = {}) => {
    const [user = ''] = session.split('/')
    return queue.enter({ queue: 'a', session, user, ...more })
  }
  return { ...queue, enter, upload: (session: string) => enter(session, { isUploading: () => true }) }
}

const hasStarted = ({ state }: Turn) => state === 'inProgress'

test('when as many calls of a queue have slots as allowed, the next call waits, and one after it is lost', async t => {
  const { enter, wait, freeSlot, length } = start()
  const first = enter('1')
  enter('2')
  const third = enter('3')
  t.deepEqual([hasStarted(first), hasStarted(third), length()], [true, false, 1])
  t.throws(() => enter('4'), full)
  t.true(hasStarted(enter('5', { queue: 'b' })))
  const waiting = wait(third, patient)
  freeSlot(first)
  t.true(await waiting)
  t.deepEqual([hasStarted(third), length()], [true, 0])
})

test('a call that has ended is no longer counted, even if its end is reported twice', t => {
  const { enter, freeSlot, leave } = start()
  const first = enter('1')
  enter('2')
  freeSlot(first)
  leave(first)
  leave(first)
  t.true(hasStarted(enter('3')))
  t.false(hasStarted(enter('4')))
})

test('a call is given up when its time is over, and its place in the queue is free again', async t => {
  const { enter, wait, length } = start()
  enter('1')
  enter('2')
  const turn = enter('3')
  await t.throwsAsync(wait(turn, 1), late)
  t.deepEqual([turn.state, length()], ['over', 0])
  t.notThrows(() => enter('3'))
})

test('a call that leaves while it waits gives up its place, and does not start later', async t => {
  const { enter, wait, leave } = start()
  const first = enter('1')
  enter('2')
  const leaving = enter('3')
  const left = wait(leaving, patient)
  leave(leaving)
  t.false(await left)
  const next = enter('4')
  leave(first)
  t.deepEqual([leaving.state, next.state], ['over', 'inProgress'])
})

test('an upload has no slot until its body was sent', t => {
  const { enter, upload, takeSlot, freeSlot } = start({ waiting: 10 })
  const [first, second] = [upload('1'), upload('2'), upload('3')] as const
  const reading = enter('reading')
  t.true(hasStarted(reading))
  takeSlot(first)
  takeSlot(first)
  const waiting = enter('waiting')
  t.false(hasStarted(waiting))
  // A body that was being sent when the slots were taken makes the number of slots exceed the limit.
  takeSlot(second)
  freeSlot(reading)
  t.false(hasStarted(waiting))
  freeSlot(first)
  t.true(hasStarted(waiting))
})

test('a response that comes before the whole body was sent needs no slot, even if the rest of the body is sent later', t => {
  const { enter, upload, takeSlot, freeSlot } = start()
  const early = upload('uploading')
  freeSlot(early)
  takeSlot(early)
  t.deepEqual(
    ['1', '2', '3'].map(session => hasStarted(enter(session))),
    [true, true, false]
  )
})

const tables: readonly (readonly [
  limit: keyof QueueLimits,
  taken: readonly [string, string],
  free: string | undefined
])[] = [
  ['ofOneSession', ['ana/1', 'ana/1'], 'ana/2'],
  ['ofOneUser', ['ana/1', 'ana/2'], 'bob'],
  ['ofOneQueue', ['ana', 'bob'], undefined],
  ['inProgress', ['ana', 'bob'], undefined]
]
for (const [limit, [one, two], free] of tables) {
  test(`the limit ${limit} counts uploads, calls and responses in progress, and a call beyond it waits`, t => {
    const { enter, upload, freeSlot, leave } = start({ slots: 10, [limit]: 2, waiting: 10 })
    const first = upload(one)
    freeSlot(upload(two))
    const next = enter(two)
    t.false(hasStarted(next))
    if (free !== undefined) t.true(hasStarted(enter(free)))
    t.is(hasStarted(enter('carl', { queue: 'b' })), limit !== 'inProgress')
    leave(first)
    t.true(hasStarted(next))
  })
}

test('a call of a session that ends in one queue lets a call of this session in another queue start', t => {
  const { enter, leave } = start({ ofOneSession: 1 })
  const first = enter('ana')
  const elsewhere = enter('ana', { queue: 'b' })
  t.false(hasStarted(elsewhere))
  leave(first)
  t.true(hasStarted(elsewhere))
})

/** Lets calls wait while one is in progress, and returns the order in which they start. */
async function orderOf(calls: readonly (readonly [session: string, more?: Partial<Turn['call']>])[]) {
  const { enter, wait, leave } = start({ inProgress: 1, waiting: 100 })
  const running = enter('first')
  const started: string[] = []
  const waiting = calls.map(async ([session, more]) => {
    const turn = enter(session, more)
    if (await wait(turn, patient)) started.push(session)
    leave(turn)
  })
  leave(running)
  await Promise.all(waiting)
  return started
}

test('a queue is served in turn by user, and for each user in turn by session', async t => {
  const sessions = ['ana/1', 'ana/1', 'ana/1', 'ana/2', 'bob', 'bob', 'carl']
  t.deepEqual(await orderOf(sessions.map(session => [session])), [
    'ana/1',
    'bob',
    'carl',
    'ana/2',
    'bob',
    'ana/1',
    'ana/1'
  ])
})

test('the queues take turns, and the calls of an urgent queue start before all others', async t => {
  t.deepEqual(await orderOf([['1'], ['2'], ['3', { queue: 'b' }], ['4', { queue: 'b' }]]), ['1', '3', '2', '4'])
  const urgent = { queue: 'urgent', isUrgent: true }
  t.deepEqual(await orderOf([['1'], ['first', urgent], ['2'], ['second', urgent]]), ['first', 'second', '1', '2'])
})

test('each queue has as many places as the others', t => {
  const { enter } = start({ inProgress: 0, waiting: 2 })
  for (const queue of ['a', 'b']) {
    for (const _ of [1, 2]) t.notThrows(() => enter('1', { queue }))
    t.throws(() => enter('1', { queue }), full)
  }
})

test('calls of a full session do not delay the calls behind them', t => {
  const { enter, freeSlot } = start({ ofOneSession: 1, waiting: 100 })
  enter('ana/1')
  const other = enter('carl')
  t.false(hasStarted(enter('ana/1')))
  const second = enter('ana/2')
  const bob = enter('bob')
  t.false(hasStarted(second))
  freeSlot(other)
  t.true(hasStarted(second))
  freeSlot(second)
  t.true(hasStarted(bob))
})

test('in a full queue, the user with the most calls loses the newest one to a user with fewer calls', async t => {
  const { enter, wait } = start({ slots: 1, waiting: 4 })
  enter('first')
  const lost: string[] = []
  for (const [index, session] of ['ana/1', 'ana/1', 'ana/2', 'bob'].entries()) {
    wait(enter(session), patient).catch(error => void (error instanceof QueueError && lost.push(`${session} ${index}`)))
  }
  t.throws(() => enter('ana/1'), full)
  t.deepEqual(lost, [])
  t.false(hasStarted(enter('carl')))
  await setImmediate()
  t.deepEqual(lost, ['ana/1 1'])
  // Bob would now have two waiting calls, as many as Ana.
  t.throws(() => enter('bob'), full)
  t.false(hasStarted(enter('dora')))
  await setImmediate()
  t.is(lost.length, 2)
})

test('a user can have one of the reserved slots of a queue, so users with many calls leave slots for others', t => {
  const { enter, freeSlot } = start({ slots: 4, reserved: 2, waiting: 10 })
  const greedy = Array.from({ length: 6 }, () => enter('greedy'))
  t.deepEqual(greedy.map(hasStarted), [true, true, true, false, false, false])
  const other = enter('other')
  t.true(hasStarted(other))
  const second = enter('other')
  const third = enter('third')
  t.deepEqual([second, third].map(hasStarted), [false, false])
  freeSlot(other)
  t.true(hasStarted(second))
  // The greedy user comes first in the queue, but keeps the reserved slot until a shared slot is free.
  freeSlot(second)
  t.true(hasStarted(third))
  t.false(greedy.slice(3).some(hasStarted))
  freeSlot(greedy[0] as Turn)
  t.true(hasStarted(greedy[3] as Turn))
})

test('uploads that end at the same time do not take the reserved slots', t => {
  const { enter, upload, takeSlot } = start({ slots: 3, reserved: 1, waiting: 10 })
  const uploads = [1, 2, 3, 4].map(() => upload('greedy'))
  for (const turn of uploads) takeSlot(turn)
  t.true(hasStarted(enter('other')))
  t.false(hasStarted(enter('third')))
})

test('the limits of the API proxy leave slots of a host for other users', t => {
  const { ofOneSession, ofOneUser, slots, ofOneQueue, inProgress } = QUEUE_LIMITS
  const ascending = [ofOneSession, ofOneUser, slots, ofOneQueue, inProgress]
  t.deepEqual(
    ascending,
    [...new Set(ascending)].sort((a, b) => a - b)
  )
})

test('an API that takes 5 s gets 100 requests a second of 100 users, and none is lost', t => {
  const queue = createFairQueue(QUEUE_LIMITS)
  const ends: Turn[][] = []
  for (let second = 0; second < 30; second++) {
    for (const turn of ends[second - 5] ?? []) queue.leave(turn)
    ends[second] = Array.from({ length: 100 }, (_, user) =>
      queue.enter({ queue: 'a', session: `${user}`, user: `${user}` })
    )
  }
  t.true(ends.flat().every(({ state }) => state !== 'waiting'))
})
