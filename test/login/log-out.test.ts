// A logout ends the session even if a refresh of the session is in progress or comes later.
import test from 'ava'
import { type ModeName, modes } from '../helpers/modes.js'
import { grantsOf, type RefreshOptions, setUpRefresh } from '../sessions/setup.js'
import { upstreamError } from './fake-idp.js'

const LOGGED_OUT = { kind: 'over', end: { reason: 'logged_out' } }

interface DuringRefresh extends RefreshOptions {
  readonly seconds?: number
  /** The number of the token request that is in progress at the logout. */
  readonly step?: number
  readonly error?: Error
}

/** Logs out while a token request of a refresh is in progress, and then lets the provider respond. */
async function logOutDuringRefresh(
  mode: ModeName,
  { seconds = 3601, step = 1, error, ...options }: DuringRefresh,
  prepare: (setUp: Awaited<ReturnType<typeof setUpRefresh>>) => void = () => {}
) {
  const setUp = await setUpRefresh(mode, options)
  const { record, clock, idp, current, logout } = setUp
  prepare(setUp)
  clock.advanceSeconds(seconds)
  if (step > 1) idp.next({})
  const { waiting, letGo } = await idp.hold(() => Promise.all(Array.from({ length: 10 }, () => current(record))), error)
  await logout(record)
  letGo()
  return { ...setUp, sessions: await waiting }
}

for (const mode of modes) {
  const grants = grantsOf[mode]

  for (let step = 1; step <= grants; step++) {
    test(`${mode}: a logout during token request ${step} of a refresh ends the session, and the refresh token that arrives late is revoked`, async t => {
      const { record, idp, current, sessions, refreshLines } = await logOutDuringRefresh(mode, { step })
      for (const session of sessions) t.deepEqual(session, LOGGED_OUT)
      t.deepEqual(idp.revoked, [idp.newestRefreshToken])
      t.deepEqual(await current(record), LOGGED_OUT)
      t.true(refreshLines().every(({ outcome }) => outcome === 'rejected'))
    })
  }

  for (const [what, options] of [
    ['a refresh', {}],
    ['an early refresh', { seconds: 3500, beforeExpirySeconds: 120 }]
  ] as const) {
    test(`${mode}: a logout during ${what} that fails afterwards ends the session`, async t => {
      const { sessions } = await logOutDuringRefresh(mode, { ...options, error: upstreamError() })
      for (const session of sessions) t.deepEqual(session, LOGGED_OUT)
    })
  }

  test(`${mode}: a logout while a refresh waits for its turn ends the session, and no refresh token is sent`, async t => {
    const { record, clock, idp, current, logout, refreshes } = await setUpRefresh(mode)
    idp.inTokenQueue = async (_queue, _options, send) => {
      await logout(record)
      clock.advanceSeconds(41)
      return send()
    }
    clock.advanceSeconds(3601)
    t.deepEqual(await current(record), LOGGED_OUT)
    t.is(refreshes(), 0)
  })

  test(`${mode}: a logout at another process wins over a refresh in progress, even if its message does not arrive`, async t => {
    const { record, clock, idp, current, addProcess, disconnect, reconnect } = await setUpRefresh(mode)
    const other = addProcess()
    clock.advanceSeconds(3601)
    const { waiting, letGo } = await idp.hold(() => current(record))
    disconnect()
    await other.logout(record)
    await reconnect()
    letGo()
    t.deepEqual(await waiting, LOGGED_OUT)
    t.deepEqual(idp.revoked, [idp.newestRefreshToken])
    for (const process of [{ current }, other]) t.deepEqual(await process.current(record), LOGGED_OUT)
  })

  test(`${mode}: a logout while the store cannot be used ends the session in this process immediately, and everywhere when the store is back`, async t => {
    const { record, current, logout, addProcess, disconnect, reconnect } = await setUpRefresh(mode)
    const other = addProcess()
    disconnect()
    await logout(record)
    t.deepEqual(await current(record), LOGGED_OUT)
    t.is((await other.current(record)).kind, 'live')
    await reconnect()
    for (const process of [{ current }, other]) t.deepEqual(await process.current(record), LOGGED_OUT)
  })
}

test('dual: if a logout comes during the second token request of a refresh and that request fails, the refresh token of the first response is revoked', async t => {
  const { idp, sessions } = await logOutDuringRefresh('dual', { step: 2, error: upstreamError() })
  for (const session of sessions) t.deepEqual(session, LOGGED_OUT)
  t.deepEqual(idp.revoked, [idp.newestRefreshToken])
})
