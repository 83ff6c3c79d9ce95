// Refreshes when the clock jumps, because a time service or a person sets it or because the computer was asleep.
import test from 'ava'
import { modes } from '../helpers/modes.js'
import { upstreamError } from '../login/fake-idp.js'
import { grantsOf, setUpRefresh } from './setup.js'

for (const mode of modes) {
  const grants = grantsOf[mode]

  test(`${mode}: if the clock is set back by five minutes no refresh is made, and if it is set back further the session is refreshed`, async t => {
    const { record, clock, live, refreshes } = await setUpRefresh(mode)
    clock.advanceSeconds(-300)
    t.is(await live(record), record)
    t.is(refreshes(), 0)
    clock.advance(-1)
    const refreshed = await live(record)
    t.is(refreshes(), grants)
    t.is(refreshed.issuedAt, clock.now())
    t.is(refreshed.fields.expires_at, clock.now() + 3_600_000)
    t.is(await live(refreshed), refreshed)
  })

  test(`${mode}: if the clock is set back during a pause, so that the pause would exceed its maximum, the session is refreshed immediately`, async t => {
    const { record, clock, live, unavailable, idp, refreshes } = await setUpRefresh(mode)
    clock.advanceSeconds(7200)
    idp.next(upstreamError(60))
    t.is((await unavailable(record)).retryAfterSeconds, 60)
    await unavailable(record)
    t.is(refreshes(), 1)
    clock.advanceSeconds(-6)
    t.is((await live(record)).fields.refresh_token, idp.newestRefreshToken)
    t.is(refreshes(), 1 + grants)
  })
}
