// Clocks jump: by a time service, by a person, after a night with the lid closed.
import test from 'ava'
import { upstreamError } from '../modes/fake-idp.js'
import { grantsOf, modeNames, setUpRefresh } from './refresh-setup.js'

for (const mode of modeNames) {
  const grants = grantsOf[mode]

  test(`${mode}: a clock set back by five minutes changes nothing, one set back further has the tokens refreshed`, async t => {
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

  test(`${mode}: when the provider is away just then, tokens from the future are served as they are`, async t => {
    const { record, clock, live, idp } = await setUpRefresh(mode)
    clock.advanceSeconds(-3600)
    idp.next(upstreamError())
    t.is(await live(record), record)
  })

  test(`${mode}: after a clock was set back no pause is longer than the maximum`, async t => {
    const { record, clock, live, unavailable, idp, refreshes } = await setUpRefresh(mode)
    clock.advanceSeconds(7200)
    idp.next(upstreamError(60))
    t.is((await unavailable(record)).retryAfterSeconds, 60)
    await unavailable(record)
    t.is(refreshes(), 1)
    clock.advanceSeconds(-1)
    t.is((await live(record)).fields.refresh_token, idp.newestRefreshToken)
    t.is(refreshes(), 1 + grants)
  })

  test(`${mode}: a clock set back by minutes loses no session whose old cookie is still in use`, async t => {
    const { record, clock, live, idp } = await setUpRefresh(mode, { lifetimeSeconds: 600 })
    clock.advanceSeconds(1000)
    const refreshed = await live(record)
    clock.advanceSeconds(-300)
    t.deepEqual(await live(record), refreshed)
    t.is(await live(refreshed), refreshed)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: a night later the session is refreshed as after an hour`, async t => {
    const { record, clock, live, idp } = await setUpRefresh(mode)
    clock.advanceSeconds(12 * 3600)
    t.is((await live(record)).fields.refresh_token, idp.newestRefreshToken)
    t.deepEqual(idp.reused, [])
  })
}
