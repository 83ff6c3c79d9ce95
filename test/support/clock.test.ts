import test from 'ava'
import { startStopwatch, wait } from '#src/support/clock.js'
import { createClock } from '../helpers/clock.js'

test('a stopwatch uses the clock that has moved further, because one may stand still and the other may be set back', t => {
  const clock = createClock()
  let ahead = 0
  const suspended = { ...clock, now: () => clock.now() + ahead }
  const elapsedMs = startStopwatch(suspended)
  clock.advance(10)
  t.is(elapsedMs(), 10)
  ahead = 60_000
  t.is(elapsedMs(), 60_010, 'the monotonic clock stood still while the machine was suspended')
  ahead = -60_000
  t.is(elapsedMs(), 10, 'the system clock was set back')
})

test('wait() resolves after the given time', async t => {
  const clock = createClock()
  let hasEnded = false
  const waiting = wait(clock, 500).then(() => {
    hasEnded = true
  })
  clock.advance(499)
  await null
  t.false(hasEnded)
  clock.advance(1)
  await waiting
  t.true(hasEnded)
})
