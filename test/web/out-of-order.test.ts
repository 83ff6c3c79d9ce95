// Responses that arrive late or never. A late response must not undo a later login or logout.
import test, { type ExecutionContext } from 'ava'
import { eventually } from '../helpers/eventually.js'
import { faults } from '../helpers/hostile-idp/index.js'
import { type ModeName, modes } from '../helpers/modes.js'
import { signIn, startTestServer } from '../helpers/server.js'
import { startSignedIn } from './support.js'

/** Starts a server with a signed-in browser whose request waits for a refresh, until `hold.release()`. */
async function startWithLateResponse(t: ExecutionContext, mode: ModeName) {
  const started = await startSignedIn(t, { mode })
  const { browser, clock, idp } = started
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const late = browser.fetch('/api/auth/profile')
  await hold.arrived()
  return { ...started, hold, late }
}

for (const mode of modes) {
  test(`${mode}: if a browser disconnects during a refresh, its old cookie still leads to the refreshed session hours later`, async t => {
    const { browser, clock, idp, logs } = await startSignedIn(t, { mode })
    clock.advanceSeconds(3600)
    const hold = idp.hold('token')
    const gone = new AbortController()
    const request = browser.fetch('/api/auth/profile', { signal: gone.signal })
    await hold.arrived()
    gone.abort()
    await t.throwsAsync(request)
    const line = () => logs.find(({ event, aborted }) => event === 'request' && aborted === true)
    await eventually(() => line() !== undefined)
    t.false('status' in (line() ?? {}), 'no response was sent, so there is no status')
    hold.release()
    const before = idp.tokenRequests.length
    await eventually(() => idp.issued.refreshTokens.length === (mode === 'dual' ? 4 : 2))
    await eventually(() => logs.all('refresh_succeeded').length === 1)
    t.is(logs.first('refresh_succeeded')?.request_id, line()?.request_id)
    clock.advanceSeconds(5 * 3600)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.true(idp.tokenRequests.length > before, 'the session that never reached the browser is refreshed')
    t.deepEqual(idp.reuses, [])
  })

  for (const end of ['a logout and a new login', 'a new login']) {
    test(`${mode}: ${end} ends the previous session, for copies of its cookie and for late responses`, async t => {
      const { browser, hold, idp, late } = await startWithLateResponse(t, mode)
      const copy = browser.clone()
      idp.fail('token', faults.none, faults.none)
      if (end.startsWith('a logout')) await browser.navigate('/api/auth/logout')
      await signIn(browser)
      const cookie = browser.cookies.value('platform_session')
      hold.release()
      const answer = await late
      t.is(answer.statusCode, 401)
      t.deepEqual(answer.setCookies, [])
      t.is(browser.cookies.value('platform_session'), cookie)
      t.is((await copy.fetch('/api/auth/profile')).statusCode, 401)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    })
  }

  test(`${mode}: a session from a clock that ran three days ahead is refreshed when the clock is right again`, async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    clock.advanceSeconds(3 * 86_400)
    await signIn(browser)
    const before = idp.tokenRequests.length
    clock.advanceSeconds(-3 * 86_400)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.true(idp.tokenRequests.length > before)
  })
}
