import test from 'ava'
import { scheduleOf, simulate } from './run.js'
import { safeguards } from './safeguards.js'

// `npm run simulate -- --seeds N` runs any number of schedules.
const SEEDS = 100
const SEEDS_IN_REDIS = 60
const SEEDS_PER_SAFEGUARD = 40

test('no login is lost and no refresh token is used twice in some hundred random schedules of faults', async t => {
  for (let seed = 0; seed < SEEDS; seed++) {
    const { schedule, violations, notes } = await simulate(scheduleOf(seed))
    t.deepEqual(violations, [], `seed ${seed} (${schedule.mode}, ${schedule.kinds.join(', ')}):\n${notes.join('\n')}`)
  }
})

test('no login is lost and no refresh token is used twice if the sessions are in Redis', async t => {
  for (let seed = 0; seed < SEEDS_IN_REDIS; seed++) {
    const { schedule, violations, notes } = await simulate(scheduleOf(seed, 'redis'))
    t.deepEqual(violations, [], `seed ${seed} (${schedule.mode}, ${schedule.kinds.join(', ')}):\n${notes.join('\n')}`)
  }
})

test('a seed always gives the same schedule and the same result', async t => {
  const first = await simulate(scheduleOf(27))
  const second = await simulate(scheduleOf(27))
  t.deepEqual(first, second)
  t.true(first.calls > 10)
})

for (const safeguard of safeguards) {
  test(`logins are lost without this safeguard: ${safeguard.name}`, async t => {
    let violations = 0
    for (let seed = 0; seed < SEEDS_PER_SAFEGUARD && violations === 0; seed++) {
      violations += (await simulate(scheduleOf(seed), safeguard)).violations.length
    }
    t.true(violations > 0)
  })

  test(`no login is lost with this safeguard in the same schedules: ${safeguard.name}`, async t => {
    const { name, kinds, queue, sessionStore } = safeguard
    const setting = { ...(queue && { queue }), ...(sessionStore && { sessionStore }) }
    for (let seed = 0; seed < SEEDS_PER_SAFEGUARD / 8; seed++) {
      const { violations } = await simulate(scheduleOf(seed), { name, kinds, ...setting })
      t.deepEqual(violations, [], `seed ${seed}`)
    }
  })
}
