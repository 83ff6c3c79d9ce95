// Responses that arrive late or never. A late response must not undo what the person has done since.
import test from 'ava'
import { eventually } from '../helpers/eventually.js'
import { faults } from '../helpers/hostile-idp/index.js'
import { modes } from '../helpers/modes.js'
import { openCallback, signIn, startLogin, startTestServer } from '../helpers/server.js'

for (const mode of modes) {
  test(`${mode}: the result of a refresh whose browser disconnected is still there hours later`, async t => {
    const { browser, clock, idp, logs } = await startTestServer(t, { mode })
    await signIn(browser)
    clock.advanceSeconds(3600)
    const hold = idp.hold('token')
    const gone = new AbortController()
    const request = browser.fetch('/api/auth/profile', { signal: gone.signal })
    await hold.arrived()
    gone.abort()
    await t.throwsAsync(request)
    await eventually(() => logs.find(({ event, aborted }) => event === 'request' && aborted === true) !== undefined)
    hold.release()
    const before = idp.tokenRequests.length
    await eventually(() => idp.issued.refreshTokens.length === (mode === 'dual' ? 4 : 2))
    await eventually(() => logs.entries.filter(({ event }) => event === 'refresh').length === 1)
    clock.advanceSeconds(5 * 3600)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.true(idp.tokenRequests.length > before, 'refreshed from the one that never reached it')
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: a late response for a logged-out session does not affect the next login`, async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    await signIn(browser)
    clock.advanceSeconds(3600)
    const hold = idp.hold('token')
    const late = browser.fetch('/api/auth/profile')
    await hold.arrived()
    idp.fail('token', faults.none, faults.none)
    await browser.navigate('/api/auth/logout')
    await signIn(browser)
    hold.release()
    const answer = await late
    t.is(answer.statusCode, 401)
    t.deepEqual(answer.setCookies, [])
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })

  test(`${mode}: a new login ends the session before it, for a copy of its cookie and for its late answers`, async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    await signIn(browser)
    const copy = browser.clone()
    clock.advanceSeconds(3600)
    const hold = idp.hold('token')
    const late = browser.fetch('/api/auth/profile')
    await hold.arrived()
    idp.fail('token', faults.none, faults.none)
    await signIn(browser)
    const cookie = browser.cookies.value('platform_session')
    hold.release()
    t.is((await late).statusCode, 401)
    t.is(browser.cookies.value('platform_session'), cookie)
    t.is((await copy.fetch('/api/auth/profile')).statusCode, 401)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })

  test(`${mode}: a callback whose first answer was lost replaces an older session when it is repeated`, async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    await signIn(browser)
    clock.advanceSeconds(10)
    const back = await startLogin(browser)
    const lost = browser.clone()
    await openCallback(lost, back)
    const before = idp.tokenRequests.length
    const repeated = await openCallback(browser, back)
    t.is(repeated.statusCode, 302)
    t.is(idp.tokenRequests.length, before)
    t.is(browser.cookies.value('platform_session')?.length, lost.cookies.value('platform_session')?.length)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })

  test(`${mode}: a clock set back by half an hour leaves no pause longer than a minute`, async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    await signIn(browser)
    clock.advanceSeconds(3 * 3600)
    idp.fail('token', faults.status(500))
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 503)
    clock.advanceSeconds(-1800)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })

  test(`${mode}: a session from a clock that ran days ahead is refreshed once the clock is right`, async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    clock.advanceSeconds(3 * 86_400)
    await signIn(browser)
    const before = idp.tokenRequests.length
    clock.advanceSeconds(-3 * 86_400)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.true(idp.tokenRequests.length > before)
  })
}

test('login and logout are not prefetched', async t => {
  const { browser } = await startTestServer(t)
  await signIn(browser)
  for (const path of ['/api/auth/login', '/api/auth/logout']) {
    for (const headers of [
      { 'sec-purpose': 'prefetch' },
      { 'sec-purpose': 'prefetch;prerender' },
      { purpose: 'prefetch' },
      { 'x-moz': 'prefetch' }
    ]) {
      const response = await browser.navigate(path, { headers })
      t.is(response.statusCode, 403, `${path} ${JSON.stringify(headers)}`)
      t.deepEqual(response.setCookies, [])
    }
  }
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
})
