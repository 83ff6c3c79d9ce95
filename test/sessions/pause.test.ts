import test from 'ava'
import { createPauses } from '#src/sessions/pause.js'
import { createClock } from '../helpers/clock.js'

test('a pause counts after the clock was set back, but the end of an earlier pause does not', t => {
  const clock = createClock()
  const { begin, leftMs } = createPauses(clock).refresh
  begin(5000)
  t.is(leftMs(true), 5000)
  begin(2000)
  t.is(leftMs(true), 5000)
  clock.advance(-3_600_000)
  t.is(leftMs(true), 0)
  begin(30_000)
  t.is(leftMs(true), 30_000)
})
