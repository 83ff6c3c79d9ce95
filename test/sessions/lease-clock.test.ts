// The clock of the store follows the clock of Redis. A time that leaves it is a whole number, because cookies and lists contain it.
import ava from 'ava'
import fc from 'fast-check'
import { createStoreClock } from '#src/sessions/redis/redis-cells.js'
import { testWithRedis as test } from '../helpers/redis.js'
import { openRedisAt } from '../helpers/redis-clock.js'
import { openCallback, signIn, startLogin } from '../helpers/server.js'
import { sessionCookies } from '../web/support.js'
import { startDeployment } from './deployment.js'

const ms = fc.integer({ min: -600_000, max: 600_000 })

ava(
  'whatever the offset between the clocks and the time of a command, the time of the store is a whole number within the limits',
  t => {
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
  }
)

for (const offsetMs of [2.5, -90_000.5, 1234.25]) {
  test(`if the clock of Redis differs by ${offsetMs} ms, logins in two tabs and a reload of the callback succeed, and a login loop is noticed`, async t => {
    const { start, clock } = await startDeployment(t)
    const { browser } = await start({}, { open: openRedisAt(() => clock.now() + offsetMs) })
    const [first, second] = [await startLogin(browser), await startLogin(browser)]
    for (const callback of [first, second, second]) t.is((await openCallback(browser, callback)).statusCode, 302)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    await signIn(browser)
    for (const [name] of sessionCookies(browser)) browser.cookies.delete(name)
    t.is((await browser.navigate('/api/auth/login')).statusCode, 400)
  })
}
