import { setImmediate } from 'node:timers/promises'
import test from 'ava'
import { QUEUE_LIMITS, type QueueLimits } from '#src/web/proxy/upstream-limits.js'
import {
  createUpstreamQueue,
  type QueueEntry,
  type QueueingRequest,
  UpstreamQueueError
} from '#src/web/proxy/upstream-queue.js'

const limits: QueueLimits = {
  waitingForHead: 2,
  reserved: 0,
  ofOneHost: 100,
  ofOneSession: 100,
  ofOneUser: 100,
  ofProcess: 100,
  queued: 1
}
const patient = 60_000
const host = 'https://a.example'

// The timer of a request that still waits would keep the process of this file running.
const taken: QueueEntry[] = []
test.after.always(() => {
  for (const entry of taken) entry.end()
})

/** Starts a queue in which each name is a session of another user. `ana/2` is the second session of `ana`. */
function start(more: Partial<QueueLimits> = {}) {
  const queue = createUpstreamQueue({ ...limits, ...more })
  return (session: string, more: Partial<QueueingRequest> = {}) => {
    const [user = ''] = session.split('/')
    const entry = queue.enter({ origin: host, session, user, isUploading: () => false, ...more })
    taken.push(entry)
    return entry
  }
}

test('when as many requests of a host wait for a response head as allowed, the next request is queued, and one after it is rejected', async t => {
  const take = start()
  const first = take('1')
  take('2')
  const third = take('3')
  t.true(first.hasStarted())
  t.false(third.hasStarted())
  t.throws(() => take('4'), { instanceOf: UpstreamQueueError })
  t.true(take('5', { origin: 'https://b.example' }).hasStarted())
  const waiting = third.wait(patient)
  first.headReceived()
  t.true(await waiting)
  t.true(third.hasStarted())
})

test('a request that has ended is no longer counted, even if its end is reported twice', async t => {
  const take = start()
  const first = take('1')
  take('2')
  first.headReceived()
  first.end()
  first.end()
  t.true(take('3').hasStarted())
  t.false(take('4').hasStarted())
})

test('a request is rejected when its time in the queue is over, and its place in the queue is free again', async t => {
  const take = start()
  take('1')
  take('2')
  await t.throwsAsync(take('3').wait(1), { instanceOf: UpstreamQueueError })
  t.notThrows(() => take('3'))
})

test('a request that is aborted in the queue gives up its place', async t => {
  const take = start()
  const first = take('1')
  take('2')
  const leaving = take('3')
  const left = leaving.wait(patient)
  leaving.end()
  t.false(await left)
  const next = take('4')
  first.end()
  t.true(next.hasStarted())
})

test('a request whose body is being sent takes no slot of its host, and takes one when its body was sent', t => {
  const take = start({ queued: 10 })
  const uploads = [1, 2, 3].map(number => take(`uploading ${number}`, { isUploading: () => true }))
  const reading = take('reading')
  t.true(reading.hasStarted())
  uploads[0]?.bodySent()
  uploads[0]?.bodySent()
  const waiting = take('waiting')
  t.false(waiting.hasStarted())
  // A body that was being sent when the slots were taken makes the number of slots exceed the limit.
  uploads[1]?.bodySent()
  reading.headReceived()
  t.false(waiting.hasStarted())
  uploads[0]?.headReceived()
  t.true(waiting.hasStarted())
})

test('a response that comes before the whole body was sent takes no slot, even if the rest of the body is sent later', t => {
  const take = start()
  const upload = take('uploading', { isUploading: () => true })
  upload.headReceived()
  upload.bodySent()
  t.true(take('1').hasStarted())
  t.true(take('2').hasStarted())
  t.false(take('3').hasStarted())
})

const tables: readonly (readonly [what: string, limit: keyof QueueLimits, full: string[], free: string | undefined])[] =
  [
    ['session', 'ofOneSession', ['ana/1', 'ana/1'], 'ana/2'],
    ['user', 'ofOneUser', ['ana/1', 'ana/2'], 'bob'],
    ['host', 'ofOneHost', ['ana', 'bob'], undefined],
    ['process', 'ofProcess', ['ana', 'bob'], undefined]
  ]
for (const [what, limit, full, free] of tables) {
  test(`the limit of a ${what} counts uploads, requests and responses in progress, and a request beyond it is queued`, t => {
    const take = start({ waitingForHead: 10, [limit]: full.length, queued: 10 })
    const [first, second] = full.map(session => take(session, { isUploading: () => true }))
    second?.headReceived()
    const next = take(full[1] ?? '')
    t.false(next.hasStarted())
    if (free !== undefined) t.true(take(free).hasStarted())
    t.is(take('carl', { origin: 'https://b.example' }).hasStarted(), limit !== 'ofProcess')
    first?.end()
    t.true(next.hasStarted())
  })
}

test('a slot of a session that becomes free at one host is given to a request of the session at another host', t => {
  const take = start({ ofOneSession: 1, queued: 10 })
  const first = take('ana')
  const elsewhere = take('ana', { origin: 'https://b.example' })
  t.false(elsewhere.hasStarted())
  first.end()
  t.true(elsewhere.hasStarted())
})

test('the queue is served in turn by user, and for each user in turn by session', async t => {
  const take = start({ waitingForHead: 1, queued: 100 })
  const running = take('first')
  const served: string[] = []
  const waiting = ['ana/1', 'ana/1', 'ana/1', 'ana/2', 'bob', 'bob', 'carl'].map(async session => {
    const entry = take(session)
    if (await entry.wait(patient)) served.push(session)
    entry.end()
  })
  running.end()
  await Promise.all(waiting)
  t.deepEqual(served, ['ana/1', 'bob', 'carl', 'ana/2', 'bob', 'ana/1', 'ana/1'])
})

test('requests of a full session do not delay the requests behind them', async t => {
  const take = start({ ofOneSession: 1, waitingForHead: 2, queued: 100 })
  take('ana/1')
  const other = take('carl')
  t.false(take('ana/1').hasStarted())
  const second = take('ana/2')
  const bob = take('bob')
  t.false(second.hasStarted())
  other.headReceived()
  t.true(second.hasStarted())
  second.headReceived()
  t.true(bob.hasStarted())
})

test('in a full queue, the user with the most requests loses the newest one to a user with fewer requests', async t => {
  const take = start({ waitingForHead: 1, queued: 4 })
  take('first')
  const lost: string[] = []
  for (const [index, session] of ['ana/1', 'ana/1', 'ana/2', 'bob'].entries()) {
    take(session)
      .wait(patient)
      .catch(error => void (error instanceof UpstreamQueueError && lost.push(`${session} ${index}`)))
  }
  t.throws(() => take('ana/1'), { instanceOf: UpstreamQueueError })
  t.deepEqual(lost, [])
  t.false(take('carl').hasStarted())
  await setImmediate()
  t.deepEqual(lost, ['ana/1 1'])
  // Bob would now have two queued requests, as many as Ana.
  t.throws(() => take('bob'), { instanceOf: UpstreamQueueError })
  t.false(take('dora').hasStarted())
  await setImmediate()
  t.is(lost.length, 2)
})

test('a user can have one of the reserved slots of a host, so users with many requests leave slots for others', t => {
  const take = start({ waitingForHead: 4, reserved: 2, queued: 10 })
  const greedy = Array.from({ length: 6 }, () => take('greedy'))
  const started = greedy.map(entry => entry.hasStarted())
  t.deepEqual(started, [true, true, true, false, false, false])
  const other = take('other')
  t.true(other.hasStarted())
  const second = take('other')
  t.false(second.hasStarted())
  const third = take('third')
  t.false(third.hasStarted())
  other.headReceived()
  t.true(second.hasStarted())
  // The greedy user comes first in the queue, but keeps the reserved slot until a shared slot is free.
  second.headReceived()
  t.true(third.hasStarted())
  t.false(greedy[3]?.hasStarted())
  greedy[0]?.headReceived()
  t.true(greedy[3]?.hasStarted())
})

test('uploads that end at the same time do not take the reserved slots', t => {
  const take = start({ waitingForHead: 3, reserved: 1, queued: 10 })
  const uploads = [1, 2, 3, 4].map(() => take('greedy', { isUploading: () => true }))
  for (const upload of uploads) upload.bodySent()
  t.true(take('other').hasStarted())
  t.false(take('third').hasStarted())
})

test('the limits of a real server keep slots of a host for other users, and a session below its user', t => {
  t.true(QUEUE_LIMITS.ofOneSession < QUEUE_LIMITS.ofOneUser)
  t.true(QUEUE_LIMITS.ofOneUser < QUEUE_LIMITS.waitingForHead)
  t.true(QUEUE_LIMITS.ofOneHost < QUEUE_LIMITS.ofProcess)
})
