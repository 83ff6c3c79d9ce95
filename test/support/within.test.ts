import test from 'ava'
import { TimeLimitError, within, withinOrUndefined } from '#src/support/within.js'
import { createClock } from '../helpers/clock.js'

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

test('withinOrUndefined() uses an answer that arrived in time although its timer fires first, and gives up 100 ms later', async t => {
  const clock = createClock()
  let answer = (_value: string) => {}
  const begin = () => {
    const promise = new Promise<string>(resolve => {
      answer = resolve
    })
    return withinOrUndefined(1000, promise, clock)
  }
  const inTime = begin()
  clock.advance(60_000)
  answer('read after the timer')
  t.is(await inTime, 'read after the timer')
  const late = begin()
  clock.advance(1000)
  clock.advance(99)
  t.is(clock.timers().length, 1)
  clock.advance(1)
  t.is(await late, undefined)
})
