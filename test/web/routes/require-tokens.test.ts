// Refreshes as a browser sees them (service contract, section 5.1, step 3), also if the provider fails. The server keeps the
// result of a refresh for a while, so that requests with the old cookie get it instead of causing another refresh.
// In dual mode a refresh makes two token requests. The second one gets the public token, which has fewer scopes and is sent to
// browsers.
import test from 'ava'
import { createClock } from '../../helpers/clock.js'
import { type Fault, faults } from '../../helpers/hostile-idp/index.js'
import { modes } from '../../helpers/modes.js'
import { startTestServer } from '../../helpers/server.js'
import { afterAnHour, sessionCookiesSet, sessionHeader, startSignedIn } from '../support.js'

const callsPerRefresh = { single: 1, dual: 2 }

const failures: readonly (readonly [fault: Fault, logged: Readonly<Record<string, string>>])[] = [
  [faults.status(500), { reason: 'provider_invalid_response', level: 'warn', outcome: 'failed' }],
  [faults.reset(), { reason: 'provider_unreachable', level: 'warn', outcome: 'failed' }],
  [faults.tooManyRequests(7), { reason: 'provider_throttled', level: 'warn', outcome: 'failed' }],
  [faults.error('invalid_client', 401), { reason: 'client_rejected', level: 'error', outcome: 'failed' }],
  [faults.error('invalid_grant', 400), { reason: 'provider_refused', level: 'info', outcome: 'rejected' }]
]

for (const mode of modes) {
  const calls = callsPerRefresh[mode]

  test(`${mode}: a hundred simultaneous requests cause one refresh, and a later request with the old cookie gets the result`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode })
    const old = browser.clone()
    const before = idp.tokenRequests.length
    clock.advanceSeconds(3600)
    const answers = await Promise.all(Array.from({ length: 100 }, () => old.clone().fetch('/api/auth/profile')))
    t.deepEqual(new Set(answers.map(({ statusCode }) => statusCode)), new Set([200]))
    t.is(idp.tokenRequests.length, before + calls)

    clock.advanceSeconds(10)
    const late = await old.clone().fetch('/api/auth/profile')
    t.is(late.statusCode, 200)
    t.true(sessionCookiesSet(late).length > 0, 'the refreshed session is sent again')
    t.is(idp.tokenRequests.length, before + calls)
    t.deepEqual(idp.reuses, [])
  })

  for (let step = 1; step <= calls; step++) {
    test(`${mode}: invalid_grant at token request ${step} of a refresh ends the session with 401, an empty body and deleted cookies`, async t => {
      const server = await startSignedIn(t, { mode })
      const { browser, idp, logs } = server
      idp.fail('token', ...(step === 2 ? [faults.none] : []), faults.error('invalid_grant'))
      const response = await afterAnHour(server)
      t.deepEqual([response.statusCode, response.body.length], [401, 0])
      t.true(sessionCookiesSet(response).every(({ value }) => value === ''))
      t.is(browser.cookies.value('platform_session'), undefined)
      t.is(logs.first('refresh_failed')?.outcome, 'rejected')
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
    })
  }

  const passing: Readonly<Record<string, Fault>> = {
    'a server error': faults.status(500),
    'an HTML error page': faults.html(502),
    'a 429 response': faults.tooManyRequests(7),
    'a cut connection': faults.reset('before'),
    'broken JSON': faults.notJson(),
    'a huge response': faults.giant(),
    'a rejected client': faults.error('invalid_client', 401),
    'a client that the gateway rejects': faults.gateway()
  }
  const useless = { 'no access token': faults.change({ access_token: undefined }) }
  for (const [name, fault] of Object.entries({ ...passing, ...useless })) {
    test(`${mode}: if the provider responds to a refresh with ${name}, the response is 503 with Retry-After, and the session stays`, async t => {
      const server = await startSignedIn(t, { mode })
      const { browser, clock, idp } = server
      const cookie = sessionHeader(browser)
      idp.failWhen('token', () => fault)
      const response = await afterAnHour(server)
      t.deepEqual([response.statusCode, response.json().error], [503, 'temporarily_unavailable'])
      t.regex(String(response.headers['retry-after']), /^[1-9]\d*$/)
      // A response without a usable access token may contain the next refresh token, which the session needs.
      t.is(sessionHeader(browser) === cookie, name in passing)
      idp.heal()
      // After a 429, refreshes pause one second longer than second token requests of refreshes that have already begun.
      clock.advanceSeconds(Number(response.headers['retry-after']) + 1)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      t.deepEqual(idp.reuses, [])
    })
  }

  test(`${mode}: with a margin a session is refreshed early, and if that fails the valid token is used`, async t => {
    const settings = { refresh: { beforeExpiry: 120 } }
    const { browser, clock, idp } = await startSignedIn(t, { mode, settings })
    clock.advanceSeconds(3599 - 120)
    const before = idp.tokenRequests.length
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.is(idp.tokenRequests.length, before)

    clock.advanceSeconds(1)
    idp.failWhen('token', () => faults.status(500))
    const still = await browser.fetch('/api/auth/profile')
    t.is(still.statusCode, 200)
    t.is(idp.tokenRequests.length, before + 1)
    t.deepEqual(still.setCookies, [])

    idp.heal()
    clock.advanceSeconds(2)
    t.true(sessionCookiesSet(await browser.fetch('/api/auth/profile')).length > 0)
    t.is(idp.tokenRequests.length, before + 1 + calls)
  })

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

  test(`${mode}: each refresh writes one log line with its outcome, duration and request id`, async t => {
    const { browser, clock, logs } = await startSignedIn(t, { mode })
    clock.advanceSeconds(3600)
    const old = browser.clone()
    await browser.fetch('/api/auth/profile', { headers: { 'x-request-id': 'request-1' } })
    await old.fetch('/api/auth/profile', { headers: { 'x-request-id': 'request-2' } })
    const [refreshed, kept, ...more] = logs.all('refresh_succeeded')
    t.deepEqual(more, [])
    const succeeded = { outcome: 'succeeded', provider_calls: calls, expires_in: 3599, request_id: 'request-1' }
    t.like(refreshed, { mode, ...succeeded })
    t.like(kept, { mode, outcome: 'already_refreshed', provider_calls: 0, request_id: 'request-2' })
    t.is(typeof refreshed?.duration_ms, 'number')
    t.regex(String(refreshed?.session), /^[\w-]{8}$/)
    t.is(kept?.session, refreshed?.session, 'the session mark in the log stays the same after a refresh')
  })

  for (const [fault, logged] of failures) {
    test(`${mode}: a refresh that fails because of ${logged.reason} writes one line, with the reason and the error`, async t => {
      const { browser, clock, idp, logs } = await startSignedIn(t, { mode })
      clock.advanceSeconds(3600)
      idp.fail('token', fault)
      await browser.fetch('/api/auth/profile')
      const refreshes = () => logs.entries.filter(({ event }) => String(event).startsWith('refresh'))
      const lines = refreshes()
      t.is(lines.length, 1)
      t.like(lines[0], { event: 'refresh_failed', mode, provider_calls: 1, requests: 1, ...logged })
      t.like(lines[0]?.err, { endpoint: 'token' })
      t.regex(String(lines[0]?.session), /^[\w-]{8}$/)
      if (logged.outcome === 'rejected') return
      // No request is sent immediately after a failure, so the provider is not the reason then.
      await browser.fetch('/api/auth/profile')
      t.like(refreshes()[1], { event: 'refresh_failed', provider_calls: 0, reason: 'refresh_paused', level: 'info' })
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

test('dual: if the second token request of a refresh fails, the next refresh continues with the second token request', async t => {
  for (const hasOldCookie of [false, true]) {
    const { browser, clock, idp } = await startSignedIn(t, { mode: 'dual' })
    const old = browser.clone()
    clock.advanceSeconds(3600)
    idp.fail('token', faults.none, faults.status(500))
    const partial = await browser.fetch('/api/auth/token')
    t.is(partial.statusCode, 503)
    t.true(sessionCookiesSet(partial).length > 0, 'the new refresh token reaches the browser')
    clock.advanceSeconds(2)
    const next = await (hasOldCookie ? old : browser).fetch('/api/auth/token')
    t.is(next.statusCode, 200)
    const publicTokens = idp.issued.accessTokens.filter(({ scope }) => scope === 'viewables:read')
    t.is(next.json().access_token, publicTokens.at(-1)?.value)
    t.deepEqual(idp.reuses, [])
  }
})

const wide = 'data:read viewables:read'
const wideResponses = {
  'in the response': { scope: wide },
  'in the claim scope of a JWT': { scope: undefined, access_token: `e30.${btoa(`{"scope":"${wide}"}`)}.signature` },
  'in the claim scp of a JWT': { scope: undefined, access_token: `e30.${btoa('{"scp":["data:read"]}')}.signature` }
}

for (const [where, changes] of Object.entries(wideResponses)) {
  test(`dual: a public token with more than the public scopes ${where} is rejected, the log names them, and nothing contains the token`, async t => {
    const { browser, clock, idp, recorder, logs } = await startSignedIn(t, { mode: 'dual' })
    clock.advanceSeconds(3600)
    idp.fail('token', faults.none, faults.change(changes))
    const response = await browser.fetch('/api/auth/token')
    t.is(response.statusCode, 503)
    t.regex(JSON.stringify(logs.find(({ event }) => event === 'refresh_failed')), /public scopes \(data:read\)/)
    recorder.assertNone(t, idp.secrets({ except: 'viewables:read' }), logs.lines)
    const refused = 'access_token' in changes ? changes.access_token : idp.issued.accessTokens.at(-1)?.value
    recorder.assertNone(t, [refused as string], logs.lines)
    clock.advanceSeconds(2)
    const next = await browser.fetch('/api/auth/token')
    t.is(next.statusCode, 200, 'the session continues with the newest refresh token')
    t.deepEqual(idp.reuses, [])
  })
}

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

test('if the provider does not respond to a refresh within the time limit, the response is 503 and the session stays', async t => {
  const { browser, clock, idp } = await startSignedIn(t, {})
  // The server with the short time limit is a second replica, because the login could exceed the limit on a slow machine.
  const impatient = await startTestServer(t, { idp, clock, settings: { platform: { timeout: 0.2 } } })
  impatient.connect(browser)
  clock.advanceSeconds(3600)
  idp.failWhen('token', () => faults.hang())
  const response = await browser.fetch('/api/auth/profile')
  t.is(response.statusCode, 503)
  t.deepEqual(response.setCookies, [])
})
