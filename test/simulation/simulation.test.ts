import test from 'ava'
import { simulate } from './run.js'
import { safeguards } from './safeguards.js'
import { scheduleOf } from './schedule.js'

// `npm run simulate -- --seeds N` runs any number of schedules.
const SEEDS = 60
const SEEDS_PER_SAFEGUARD = 120

test.serial('no login is lost and no refresh token is used twice in sixty random schedules of faults', async t => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const { schedule, violations, notes } = await simulate(scheduleOf(seed))
    const { mode, sessionStore, faults } = schedule
    t.deepEqual(violations, [], `seed ${seed} (${mode}, ${sessionStore}, ${faults.join(', ')}):\n${notes.join('\n')}`)
  }
})

test.serial('a seed always gives the same schedule and the same result', async t => {
  const first = await simulate(scheduleOf(27))
  const second = await simulate(scheduleOf(27))
  t.deepEqual(first, second)
  t.true(first.calls > 10)
})

for (const safeguard of safeguards) {
  test.serial(`violations are found without this safeguard: ${safeguard.name}`, async t => {
    let violations = 0
    for (let seed = 0; seed < SEEDS_PER_SAFEGUARD && violations === 0; seed++) {
      violations += (await simulate(scheduleOf(seed), safeguard)).violations.length
    }
    t.true(violations > 0)
  })
}
