import test from 'ava'
import { createQueue, QueueFullError } from '#src/provider/queue.js'

const patient = () => new AbortController().signal
/** Waits until all callbacks that are already due have run. */
const settled = () => new Promise(resolve => setImmediate(resolve))

test('as many callers as allowed enter immediately, and the others enter in the order of their calls', async t => {
  const queue = createQueue({ concurrent: 2, waiting: 10 })
  const entered: number[] = []
  const leaves: (() => void)[] = []
  for (const n of [1, 2, 3, 4, 5]) {
    void queue.enter(patient).then(leave => {
      entered.push(n)
      leaves.push(leave)
    })
  }
  await settled()
  t.deepEqual(entered, [1, 2])
  leaves[1]?.()
  await settled()
  t.deepEqual(entered, [1, 2, 3])
  leaves[0]?.()
  leaves[2]?.()
  await settled()
  t.deepEqual(entered, [1, 2, 3, 4, 5])
})

test('a later caller does not enter before an earlier one that waits', async t => {
  const queue = createQueue({ concurrent: 1, waiting: 10 })
  const leave = await queue.enter(patient)
  const order: string[] = []
  const first = queue.enter(patient).then(next => {
    order.push('waited')
    return next
  })
  leave()
  const second = queue.enter(patient).then(() => order.push('came later'))
  ;(await first)()
  await second
  t.deepEqual(order, ['waited', 'came later'])
})

test('if a caller leaves twice, only one waiting caller enters', async t => {
  const queue = createQueue({ concurrent: 1, waiting: 10 })
  const leave = await queue.enter(patient)
  let inside = 0
  for (const _ of [1, 2]) void queue.enter(patient).then(() => inside++)
  leave()
  leave()
  await settled()
  t.is(inside, 1)
})

for (const isUrgent of [false, true]) {
  test(`an aborted caller frees its place in the queue and does not enter later (urgent: ${isUrgent})`, async t => {
    const queue = createQueue({ concurrent: 1, waiting: 1 })
    const leave = await queue.enter(patient)
    const impatient = new AbortController()
    const givenUp = queue.enter(() => impatient.signal, { isUrgent })
    const reason = new Error('no more patience')
    impatient.abort(reason)
    t.is(await t.throwsAsync(givenUp), reason)
    const next = queue.enter(patient, { isUrgent })
    leave()
    await t.notThrowsAsync(next)
  })
}

test('a caller whose signal is already aborted does not wait', async t => {
  const queue = createQueue({ concurrent: 1, waiting: 1 })
  const leave = await queue.enter(patient)
  await t.throwsAsync(
    queue.enter(() => AbortSignal.abort(new Error('too late'))),
    { message: 'too late' }
  )
  const next = queue.enter(patient)
  leave()
  await t.notThrowsAsync(next)
})

test('the time limit of a caller begins only if the caller must wait', async t => {
  const queue = createQueue({ concurrent: 1, waiting: 1 })
  let limits = 0
  const counted = () => {
    limits++
    return patient()
  }
  const leave = await queue.enter(counted)
  t.is(limits, 0)
  const next = queue.enter(counted)
  t.is(limits, 1)
  leave()
  await t.notThrowsAsync(next)
})

test('urgent callers enter before the others, in the order of their calls', async t => {
  const queue = createQueue({ concurrent: 1, waiting: 10 })
  const leave = await queue.enter(patient)
  const order: string[] = []
  const callers = ['first', 'urgent first', 'second', 'urgent second'].map(async name => {
    const leave = await queue.enter(patient, { isUrgent: name.startsWith('urgent') })
    order.push(name)
    leave()
  })
  leave()
  await Promise.all(callers)
  t.deepEqual(order, ['urgent first', 'urgent second', 'first', 'second'])
})

test('urgent callers have separate places in the queue, as many as the other callers have', async t => {
  const queue = createQueue({ concurrent: 1, waiting: 2 })
  await queue.enter(patient)
  for (const isUrgent of [false, true]) {
    for (const _ of [1, 2]) void queue.enter(patient, { isUrgent })
    await t.throwsAsync(queue.enter(patient, { isUrgent }), { instanceOf: QueueFullError })
  }
})
