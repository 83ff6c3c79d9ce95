// A logout ends the session even if a refresh of the session is in progress or comes later.
import test from 'ava'
import { upstreamError } from '../modes/fake-idp.js'
import { grantsOf, modeNames, setUpRefresh } from '../refresh/setup.js'

for (const mode of modeNames) {
  const grants = grantsOf[mode]

  test(`${mode}: after a logout, old and new cookies of the session are rejected without a call to the provider`, async t => {
    const { record, clock, live, current, logout, refreshes } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    const refreshed = await live(record)
    await logout(refreshed)
    for (const old of [record, refreshed]) t.deepEqual(await current(old), { kind: 'over', why: 'loggedOut' })
    clock.advanceSeconds(3601)
    for (const old of [record, refreshed]) t.deepEqual(await current(old), { kind: 'over', why: 'loggedOut' })
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
      for (const session of await Promise.all(waiting)) t.deepEqual(session, { kind: 'over', why: 'loggedOut' })
      t.deepEqual(idp.revoked, [idp.newestRefreshToken])
      t.deepEqual(await current(record), { kind: 'over', why: 'loggedOut' })
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
    t.deepEqual(await waiting, { kind: 'over', why: 'loggedOut' })
  })

  test(`${mode}: a logout while a refresh waits for its turn ends the session, and no refresh token is sent`, async t => {
    const { record, clock, idp, current, logout, refreshes } = await setUpRefresh(mode)
    idp.enterTokenQueue = async () => {
      await logout(record)
      clock.advanceSeconds(41)
      return () => {}
    }
    clock.advanceSeconds(3601)
    t.deepEqual(await current(record), { kind: 'over', why: 'loggedOut' })
    t.is(refreshes(), 0)
  })

  test(`${mode}: a logout during an early refresh that fails afterwards ends the session, although its tokens are still valid`, async t => {
    const { record, clock, idp, current, logout } = await setUpRefresh(mode, { marginSeconds: 120 })
    clock.advanceSeconds(3500)
    const held = idp.holdNext(upstreamError())
    const waiting = current(record)
    await held.begun
    await logout(record)
    held.letGo()
    t.deepEqual(await waiting, { kind: 'over', why: 'loggedOut' })
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
    t.deepEqual(await waiting, { kind: 'over', why: 'loggedOut' })
  })

  test(`${mode}: a logout ends its own session and no other session`, async t => {
    const { record, clock, live, login, logout, store } = await setUpRefresh(mode)
    const other = await login('another-session')
    await logout(record)
    t.true(store.isLoggedOut(record.id))
    t.false(store.isLoggedOut(other.id))
    clock.advanceSeconds(3601)
    t.is((await live(other)).id, 'another-session')
  })
}

for (const mode of modeNames) {
  test(`${mode}: a logout at another process wins over a refresh in progress, even if its message does not arrive`, async t => {
    const { record, clock, idp, current, addProcess, disconnect, reconnect } = await setUpRefresh(mode)
    const other = addProcess()
    clock.advanceSeconds(3601)
    const held = idp.holdNext()
    const waiting = current(record)
    await held.begun
    disconnect()
    await other.logout(record)
    await reconnect()
    held.letGo()
    t.deepEqual(await waiting, { kind: 'over', why: 'loggedOut' })
    t.deepEqual(idp.revoked, [idp.newestRefreshToken])
    for (const process of [{ current }, other])
      t.deepEqual(await process.current(record), { kind: 'over', why: 'loggedOut' })
  })

  test(`${mode}: a logout while the store cannot be used ends the session in this process at once, and everywhere when the store is back`, async t => {
    const { record, current, logout, addProcess, disconnect, reconnect } = await setUpRefresh(mode)
    const other = addProcess()
    disconnect()
    await logout(record)
    t.deepEqual(await current(record), { kind: 'over', why: 'loggedOut' })
    t.is((await other.current(record)).kind, 'live')
    await reconnect()
    for (const process of [{ current }, other])
      t.deepEqual(await process.current(record), { kind: 'over', why: 'loggedOut' })
  })

  test(`${mode}: a session stays logged out for longer than a cookie of it can be valid`, async t => {
    const { record, clock, current, logout } = await setUpRefresh(mode)
    await logout(record)
    clock.advanceSeconds(86_400)
    t.deepEqual(await current(record), { kind: 'over', why: 'loggedOut' })
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
  t.deepEqual(await waiting, { kind: 'over', why: 'loggedOut' })
  t.deepEqual(idp.revoked, [idp.newestRefreshToken])
})
