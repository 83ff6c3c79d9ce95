import test from 'ava'
import { simulateLoss, simulateQuota } from './many-replicas.js'

const SERVICE = { scriptMs: 0.03, deliveryMs: 0.003 }
const PEOPLE = { sessions: 2000, secondsBetweenRequests: 60, secondsBetweenRefreshes: 100 }
const LOSS = { replicas: 10, service: SERVICE, ...PEOPLE, outageSeconds: 3, observedSeconds: 20 }
// A simulation gives the same result again, as a test below checks, so several tests use the result of one run.
const loss = simulateLoss(LOSS)

test('all processes grant locks again soon after Redis has lost its data, and nobody is signed out', async t => {
  const { settledSeconds = Number.POSITIVE_INFINITY, due, refreshed, lostLogins, awayAgain } = await loss
  // A process waits for 2 seconds after it has reached Redis, and tries to reach it every 500 ms.
  t.true(settledSeconds >= 2 && settledSeconds < 4, `${settledSeconds} s`)
  t.is(lostLogins, 0)
  t.is(awayAgain, 0)
  t.true(due > 400)
  t.true(refreshed > 0.8 * due, `${refreshed} of ${due}`)
})

test('the processes settle later if Redis needs more time for what they store again', async t => {
  const fast = await loss
  const slow = await simulateLoss({ ...LOSS, service: { scriptMs: 0.9, deliveryMs: 0.003 } })
  t.true(slow.longestQueueMs > 3 * fast.longestQueueMs, `${slow.longestQueueMs} and ${fast.longestQueueMs} ms`)
})

test('if Redis is slow for the number of processes, they store fewer entries at once, and all settle', async t => {
  // If each process stored 100 entries at once, the last of them would wait for more than the time limit of one second.
  const service = { scriptMs: 0.9, deliveryMs: 0.003 }
  const {
    settledSeconds = Number.POSITIVE_INFINITY,
    awayAgain,
    lostLogins
  } = await simulateLoss({
    ...LOSS,
    replicas: 20,
    sessions: 4000,
    service,
    observedSeconds: 40
  })
  t.is(awayAgain, 0)
  t.true(settledSeconds < 10, `${settledSeconds} s`)
  t.is(lostLogins, 0)
})

test('the queue of a quota takes as long as its calls, and nobody is signed out', async t => {
  const sessions = 60
  const callsPerMinute = 30
  const { waiting, minutes, calls, rejected, messages, lostLogins } = await simulateQuota({
    replicas: 10,
    service: SERVICE,
    sessions,
    callsPerMinute,
    observedMinutes: 20
  })
  t.is(lostLogins, 0)
  // Two calls for each session, as in dual mode.
  t.is(calls - rejected, 2 * sessions)
  t.is(minutes, waiting.length)
  t.true((minutes ?? 0) >= (2 * sessions) / callsPerMinute)
  t.deepEqual(
    waiting,
    waiting.toSorted((a, b) => b - a)
  )
  // Each 429 is a message to all ten processes.
  t.is(messages, 10 * rejected)
})

test('a simulation gives the same result again', async t => {
  t.deepEqual(await simulateLoss(LOSS), await loss)
})
