// The clock of the store follows the clock of Redis. A time that leaves it is a whole number, because cookies and lists contain it.
import test from 'ava'
import fc from 'fast-check'
import { createStoreClock } from '#src/sessions/redis/redis-cells.js'

const ms = fc.integer({ min: -600_000, max: 600_000 })

test('whatever the offset between the clocks and the time of a command, the time of the store is a whole number within the limits', t => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ offset: ms, there: fc.nat(900), back: fc.nat(900) }), { minLength: 1 }),
      replies => {
        let now = 1_700_000_000_000
        const time = createStoreClock({ now: () => now })
        for (const { offset, there, back } of replies) {
          const learn = time.measure()
          now += there
          const reply = now + offset
          now += back
          learn(reply)
          t.true(Number.isInteger(time.now()))
          t.true(time.now() >= reply - 1 && time.now() <= reply + there + back + 1)
        }
      }
    )
  )
})
