// With a margin a session is refreshed before its time, and a provider's bad minute does not matter until then.
import test from 'ava'
import { oauthError, upstreamError } from '../modes/fake-idp.js'
import { grantsOf, modeNames, setUpRefresh } from './refresh-setup.js'

for (const mode of modeNames) {
  const grants = grantsOf[mode]

  test(`${mode}: a session is refreshed when less than the margin is left`, async t => {
    const { record, clock, live, refreshes } = await setUpRefresh(mode, { marginSeconds: 120 })
    clock.advanceSeconds(3480)
    t.is(await live(record), record)
    t.is(refreshes(), 0)
    clock.advance(1)
    const refreshed = await live(record)
    t.is(refreshed.fields.expires_at, clock.now() + 3_600_000)
    t.is(refreshes(), grants)
    t.is(await live(refreshed), refreshed)
  })

  test(`${mode}: a margin longer than the tokens live does not refresh at every request`, async t => {
    const { record, clock, live, refreshes } = await setUpRefresh(mode, { marginSeconds: 120, lifetimeSeconds: 60 })
    let held = record
    for (let second = 0; second < 30; second++) {
      t.is(await live(held), held)
      clock.advanceSeconds(1)
    }
    t.is(await live(held), held)
    clock.advance(1)
    held = await live(held)
    t.is(refreshes(), grants)
    clock.advanceSeconds(30)
    t.is(await live(held), held)
    t.is(refreshes(), grants)
  })

  for (const error of [upstreamError(), oauthError('invalid_client'), new TypeError('odd')]) {
    test(`${mode}: a early refresh that fails with "${error.message}" serves the tokens that are still good`, async t => {
      const { record, clock, idp, live, unavailable, refreshes } = await setUpRefresh(mode, { marginSeconds: 120 })
      clock.advanceSeconds(3500)
      idp.next(error)
      t.is(await live(record), record)
      t.is(await live(record), record)
      t.is(refreshes(), 1)
      clock.advanceSeconds(101)
      idp.next(error)
      t.is((await unavailable(record)).record, record)
    })
  }

  test(`${mode}: tokens are served up to their very end, and no further, while the provider fails`, async t => {
    const { record, clock, idp, live, unavailable } = await setUpRefresh(mode, { marginSeconds: 120 })
    clock.advanceSeconds(3600)
    t.is(record.fields.expires_at, clock.now())
    idp.next(upstreamError())
    t.is(await live(record), record)
    clock.advance(1)
    t.is((await unavailable(record)).record, record)
  })

  test(`${mode}: a early refresh is tried again after a moment`, async t => {
    const { record, clock, idp, live, refreshes } = await setUpRefresh(mode, { marginSeconds: 120 })
    clock.advanceSeconds(3500)
    idp.next(upstreamError())
    await live(record)
    clock.advanceSeconds(1)
    t.is((await live(record)).fields.expires_at, clock.now() + 3_600_000)
    t.is(refreshes(), 1 + grants)
  })

  test(`${mode}: a refresh token that is dead before its time ends the session`, async t => {
    const { record, clock, idp, current } = await setUpRefresh(mode, { marginSeconds: 120 })
    clock.advanceSeconds(3500)
    idp.next(oauthError('invalid_grant'))
    t.deepEqual(await current(record), { kind: 'ended' })
  })

  test(`${mode}: many requests within the margin are one refresh`, async t => {
    const { record, clock, live, refreshes } = await setUpRefresh(mode, { marginSeconds: 120 })
    clock.advanceSeconds(3500)
    const refreshed = await Promise.all(Array.from({ length: 50 }, () => live(record)))
    for (const other of refreshed) t.deepEqual(other, refreshed[0])
    t.is(refreshes(), grants)
  })

  test(`${mode}: a kept result that is itself within the margin is good enough for an old cookie`, async t => {
    const options = { marginSeconds: 20, lifetimeSeconds: 50 }
    const { record, clock, live, refreshes } = await setUpRefresh(mode, options)
    clock.advanceSeconds(31)
    const refreshed = await live(record)
    clock.advanceSeconds(31)
    t.deepEqual(await live(record), refreshed)
    t.is(refreshes(), grants)
    t.not((await live(refreshed)).fields.expires_at, refreshed.fields.expires_at)
    t.is(refreshes(), 2 * grants)
  })

  test(`${mode}: the margin holds at a provider that does not rotate, kept results notwithstanding`, async t => {
    const options = { marginSeconds: 20, lifetimeSeconds: 50, rotates: false }
    const { record, clock, live, refreshes } = await setUpRefresh(mode, options)
    let held = record
    for (const times of [1, 2, 3]) {
      clock.advanceSeconds(31)
      const refreshed = await live(held)
      t.is(refreshed.fields.expires_at, clock.now() + 50_000)
      t.is(refreshes(), times * grants)
      t.deepEqual(await live(held), refreshed)
      t.is(refreshes(), times * grants)
      held = refreshed
    }
  })
}

test('dual: an early refresh that fails halfway serves the tokens that are still valid and keeps the partial result', async t => {
  const { record, clock, idp, live, unavailable } = await setUpRefresh('dual', { marginSeconds: 120 })
  clock.advanceSeconds(3500)
  idp.next({}, upstreamError())
  const half = await live(record)
  t.is(half.fields.public_token, record.fields.public_token)
  t.is(half.fields.expires_at, record.fields.expires_at)
  t.is(half.fields.refresh_token, idp.newestRefreshToken)
  t.not(half.fields.internal_token, record.fields.internal_token)

  clock.advanceSeconds(101)
  idp.next(upstreamError())
  const later = await unavailable(half)
  clock.advanceSeconds(1)
  t.is((await live(later.record)).fields.expires_at, half.internalExpiresAt as number)
  t.deepEqual(idp.reused, [])
})
