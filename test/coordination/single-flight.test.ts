import { setTimeout as pause } from 'node:timers/promises'
import test from 'ava'
import { createSingleFlight } from '#src/coordination/single-flight.js'

function createGate() {
  let open = () => {}
  const gate = new Promise<void>(resolve => {
    open = resolve
  })
  return { gate, open }
}

test('callers are rejected after the time limit, and the work continues', async t => {
  const flights = createSingleFlight(20)
  const { gate, open } = createGate()
  let hasEnded = false
  const asked = [1, 2].map(() =>
    flights.run('key', async () => {
      await gate
      hasEnded = true
    })
  )
  for (const answer of asked) {
    await t.throwsAsync(answer, { name: 'CoordinationError', message: /still running/ })
  }
  t.true(flights.isRunning('key'))
  open()
  await flights.idle()
  t.true(hasEnded)
  t.false(flights.isRunning('key'))
})

test('a caller that comes after the time limit of the running work is rejected at once', async t => {
  const flights = createSingleFlight(1)
  const { gate, open } = createGate()
  const first = flights.run('key', () => gate)
  await t.throwsAsync(first)
  const started = performance.now()
  await t.throwsAsync(flights.run('key', async () => t.fail('a second run began')))
  t.true(performance.now() - started < 1000)
  open()
  await flights.idle()
})

test('work that fails after its callers have been rejected causes no unhandled rejection', async t => {
  const flights = createSingleFlight(1)
  const { gate, open } = createGate()
  const first = flights.run('key', async () => {
    await gate
    throw new Error('too late to tell')
  })
  await t.throwsAsync(first, { name: 'CoordinationError' })
  open()
  await flights.idle()
  await pause(1)
  t.deepEqual(await flights.run('key', async () => 'again'), { value: 'again', how: 'ran' })
})
