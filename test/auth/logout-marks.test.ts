// A logout ends the session even if a refresh of the session is in progress or comes later.
import test from 'ava'
import { isLoggedOut, markLoggedOut } from '#src/auth/logout-marks.js'
import { createMemoryCoordination } from '#src/coordination/memory.js'
import { createClock } from '../helpers/clock.js'
import { upstreamError } from '../modes/fake-idp.js'
import { grantsOf, modeNames, setUpRefresh } from './refresh-setup.js'

test('a session counts as logged out for the given time, and no other session does', async t => {
  const clock = createClock()
  const coordination = createMemoryCoordination(clock.now)
  t.false(await isLoggedOut(coordination, 'id'))
  await markLoggedOut(coordination, 'id', 1000)
  t.true(await isLoggedOut(coordination, 'id'))
  t.false(await isLoggedOut(coordination, 'other id'))
  clock.advance(999)
  t.true(await isLoggedOut(coordination, 'id'))
  clock.advance(1)
  t.false(await isLoggedOut(coordination, 'id'))
})

for (const mode of modeNames) {
  const grants = grantsOf[mode]

  test(`${mode}: after a logout, old and new cookies of the session are rejected without a call to the provider`, async t => {
    const { record, clock, live, current, logout, refreshes } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    const refreshed = await live(record)
    await logout(refreshed)
    for (const old of [record, refreshed]) t.deepEqual(await current(old), { kind: 'loggedOut' })
    clock.advanceSeconds(3601)
    for (const old of [record, refreshed]) t.deepEqual(await current(old), { kind: 'loggedOut' })
    t.is(refreshes(), grants)
  })

  for (let step = 1; step <= grants; step++) {
    test(`${mode}: a logout during token request ${step} of a refresh ends the session, and the refresh token that arrives late is revoked`, async t => {
      const { record, clock, idp, current, logout, refreshLines } = await setUpRefresh(mode)
      clock.advanceSeconds(3601)
      if (step > 1) idp.next({})
      const held = idp.holdNext()
      const waiting = Array.from({ length: 10 }, () => current(record))
      await held.begun
      await logout(record)
      held.letGo()
      for (const session of await Promise.all(waiting)) t.deepEqual(session, { kind: 'loggedOut' })
      t.deepEqual(idp.revoked, [idp.newestRefreshToken])
      t.deepEqual(await current(record), { kind: 'loggedOut' })
      t.true(refreshLines().every(({ outcome }) => outcome === 'rejected'))
    })
  }

  test(`${mode}: a logout during a refresh that fails afterwards ends the session`, async t => {
    const { record, clock, idp, current, logout } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    const held = idp.holdNext(upstreamError())
    const waiting = current(record)
    await held.begun
    await logout(record)
    held.letGo()
    t.deepEqual(await waiting, { kind: 'loggedOut' })
  })

  test(`${mode}: a logout during an early refresh that fails afterwards ends the session, although its tokens are still valid`, async t => {
    const { record, clock, idp, current, logout } = await setUpRefresh(mode, { marginSeconds: 120 })
    clock.advanceSeconds(3500)
    const held = idp.holdNext(upstreamError())
    const waiting = current(record)
    await held.begun
    await logout(record)
    held.letGo()
    t.deepEqual(await waiting, { kind: 'loggedOut' })
  })

  test(`${mode}: if the refresh token that arrives after a logout cannot be revoked, the session is still logged out`, async t => {
    const { record, clock, idp, current, logout } = await setUpRefresh(mode)
    idp.revokeRefreshToken = () => Promise.reject(upstreamError())
    clock.advanceSeconds(3601)
    const held = idp.holdNext()
    const waiting = current(record)
    await held.begun
    await logout(record)
    held.letGo()
    t.deepEqual(await waiting, { kind: 'loggedOut' })
  })

  test(`${mode}: a logout ends its own session and no other session`, async t => {
    const { record, clock, live, logout, mode: modeUnderTest } = await setUpRefresh(mode)
    const { fields } = await modeUnderTest.exchangeCode({ code: 'd', codeVerifier: 'v', nonce: 'n' })
    const other = { id: 'another-session', loggedInAt: clock.now(), issuedAt: clock.now(), fields }
    await logout(record)
    clock.advanceSeconds(3601)
    t.is((await live(other)).id, 'another-session')
  })
}

test('dual: if a logout comes during the second token request of a refresh and that request fails, the refresh token of the first response is revoked', async t => {
  const { record, clock, idp, current, logout } = await setUpRefresh('dual')
  clock.advanceSeconds(3601)
  idp.next({})
  const held = idp.holdNext(upstreamError())
  const waiting = current(record)
  await held.begun
  await logout(record)
  held.letGo()
  t.deepEqual(await waiting, { kind: 'loggedOut' })
  t.deepEqual(idp.revoked, [idp.newestRefreshToken])
})
