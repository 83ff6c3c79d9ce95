// Refreshes as a browser sees them (service contract, section 5.1, step 3), also if the provider fails. The server keeps the
// result of a refresh for a while, so that requests with the old cookie get it instead of causing another refresh.
// In dual mode a refresh makes two token requests. The second one gets the public token, which has fewer scopes and is sent to
// browsers.
import test from 'ava'
import { createClock } from '../../helpers/clock.js'
import { faults } from '../../helpers/hostile-idp/index.js'
import { modes } from '../../helpers/modes.js'
import { afterAnHour, sessionCookiesSet, sessionHeader, startSignedIn } from '../support.js'

for (const mode of modes) {
  // The other faults, and which of them end a session: test/sessions/faults.test.ts.
  for (const [name, fault, isUnchanged] of [
    ['a 429 response', faults.tooManyRequests(7), true],
    ['no access token', faults.change({ access_token: undefined }), false]
  ] as const) {
    test(`${mode}: if the provider responds to a refresh with ${name}, the response is 503 with Retry-After, and the session stays`, async t => {
      const server = await startSignedIn(t, { mode })
      const { browser, clock, idp } = server
      const cookie = sessionHeader(browser)
      idp.failWhen('token', () => fault)
      const response = await afterAnHour(server)
      t.deepEqual([response.statusCode, response.json().error], [503, 'temporarily_unavailable'])
      t.regex(String(response.headers['retry-after']), /^[1-9]\d*$/)
      // A response without a usable access token may contain the next refresh token, which the session needs.
      t.is(sessionHeader(browser) === cookie, isUnchanged)
      idp.heal()
      // After a 429, refreshes pause one second longer than second token requests of refreshes that have already begun.
      clock.advanceSeconds(Number(response.headers['retry-after']) + 1)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      t.deepEqual(idp.reuses, [])
    })
  }

  for (const outcome of ['responds', 'goes away']) {
    test(`${mode}: if the user logs out while user info is requested and the provider then ${outcome}, the response does not bring the session back`, async t => {
      const { browser, clock, idp } = await startSignedIn(t, { mode })
      clock.advanceSeconds(3600)
      const hold = idp.hold('userinfo')
      const profile = browser.fetch('/api/auth/profile')
      await hold.arrived()
      t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
      if (outcome === 'responds') hold.release()
      else await idp.offline()
      const answer = await profile
      t.is(answer.statusCode, outcome === 'responds' ? 401 : 502)
      if (outcome === 'responds') t.deepEqual([answer.text(), answer.headers['content-type']], ['', undefined])
      t.deepEqual(sessionCookiesSet(answer), [])
      t.deepEqual(browser.cookies.all(), [])
    })
  }
}

test('a request that stops to wait for a slow provider logs that the refresh has not ended', async t => {
  const clock = createClock()
  const settings = { platform: { timeout: 10 } }
  const { browser, idp, logs } = await startSignedIn(t, { clock, parts: { clock }, settings })
  clock.advanceSeconds(3600)
  const hold = idp.hold('token')
  const waiting = browser.fetch('/api/auth/profile')
  await hold.arrived()
  for (const seconds of [10, 1]) clock.advanceSeconds(seconds)
  t.is((await waiting).statusCode, 503)
  t.like(logs.first('request_failed'), { status: 503, error_code: 'temporarily_unavailable' })
  t.like(logs.first('request_failed')?.err, { type: 'refresh_pending' })
  hold.release()
})

test('if a refreshed session is too large for its cookies, the log says so, and the session continues when its tokens are small enough', async t => {
  const { browser, clock, idp, logs } = await startSignedIn(t, {})
  const cookie = browser.cookies.value('platform_session')
  clock.advanceSeconds(3600)
  idp.settings.accessTokenLength = 16_000
  for (let time = 0; time < 2; time += 1) {
    const response = await browser.fetch('/api/auth/profile')
    t.deepEqual([response.statusCode, response.json().error], [500, 'session_too_large'])
    t.is(browser.cookies.value('platform_session'), cookie)
  }
  const line = logs.find(({ event, error_code }) => event === 'request_failed' && error_code === 'session_too_large')
  t.is(line?.level, 'error')
  t.is(idp.tokenRequests.length, 2, 'no used refresh token is sent again')
  clock.advanceSeconds(3600)
  idp.settings.accessTokenLength = 600
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.not(browser.cookies.value('platform_session'), cookie)
  t.deepEqual(idp.reuses, [])
})
