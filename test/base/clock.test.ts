import test from 'ava'
import { startStopwatch, TimeLimitError, within, withinOrUndefined } from '#src/base/clock.js'
import { createClock } from '../helpers/clock.js'
import { createDeferred } from '../helpers/deferred.js'

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

test('within() rejects with TimeLimitError if its promise does not settle in time', async t => {
  const clock = createClock()
  const late = t.throwsAsync(within(1000, new Promise(() => {}), clock), {
    instanceOf: TimeLimitError,
    message: /1000 ms/
  })
  await clock.runUntilSettled(late)
})

test('withinOrUndefined() settles like its promise if that settles in time, and then leaves no timer behind', async t => {
  const clock = createClock()
  t.is(await withinOrUndefined(1000, Promise.resolve('done'), clock), 'done')
  await t.throwsAsync(withinOrUndefined(1000, Promise.reject(new Error('odd')), clock), { message: 'odd' })
  t.deepEqual(clock.timers(), [])
})

test('withinOrUndefined() uses a result that arrived in time although its timer fires first, and gives up 100 ms later', async t => {
  const clock = createClock()
  const [arriving, answer] = createDeferred<string>()
  const inTime = withinOrUndefined(1000, arriving, clock)
  clock.advance(60_000)
  answer('read after the timer')
  t.is(await inTime, 'read after the timer')
  const late = withinOrUndefined(1000, new Promise(() => {}), clock)
  clock.advance(1000)
  clock.advance(99)
  t.is(clock.timers().length, 1)
  clock.advance(1)
  t.is(await late, undefined)
})
