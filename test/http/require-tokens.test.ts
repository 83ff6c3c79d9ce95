// The refresh step as browsers see it: contract section 5.1, step 3, and what must hold when the provider does not play along.
import test, { type ExecutionContext } from 'ava'
import type { BrowserResponse } from '../helpers/browser.js'
import { eventually } from '../helpers/eventually.js'
import { type Fault, faults } from '../helpers/hostile-idp/index.js'
import { modes } from '../helpers/modes.js'
import { signIn, startTestServer, type TestServer, type TestServerOptions } from '../helpers/server.js'

const callsPerRenewal = { single: 1, dual: 2 }

async function startSignedIn(t: ExecutionContext, options: TestServerOptions): Promise<TestServer> {
  const started = await startTestServer(t, options)
  await signIn(started.browser)
  return started
}

function sessionCookies({ setCookies }: BrowserResponse) {
  return setCookies.filter(({ name }) => name.startsWith('platform_session') && !name.endsWith('_login'))
}

for (const mode of modes) {
  const calls = callsPerRenewal[mode]

  test(`${mode}: a session is refreshed when it has expired, and not a moment before`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode })
    const before = idp.tokenRequests.length
    clock.advanceSeconds(3599)
    const active = await browser.fetch('/api/auth/profile')
    t.is(active.statusCode, 200)
    t.is(idp.tokenRequests.length, before, 'expires_at equal to now is not earlier than now')

    clock.advance(1)
    const refreshed = await browser.fetch('/api/auth/profile')
    t.is(refreshed.statusCode, 200)
    t.is(idp.tokenRequests.length, before + calls)
    t.true(sessionCookies(refreshed).length > 0)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.is(idp.tokenRequests.length, before + calls, 'the refreshed session is active')
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: a refresh always names its scopes, and they never exceed those of the login`, async t => {
    const { browser, clock, idp, config } = await startSignedIn(t, { mode })
    const before = idp.tokenRequests.length
    clock.advanceSeconds(3600)
    await browser.fetch('/api/auth/profile')
    const { scopes, internalScopes, publicScopes } = config.platform
    const expected = mode === 'single' ? [scopes] : [internalScopes, publicScopes]
    const sent = idp.tokenRequests.slice(before).map(({ form }) => form.scope)
    t.deepEqual(
      sent,
      expected.map(list => list.join(' '))
    )
  })

  test(`${mode}: a hundred requests at once refresh once, and a late one with the old cookie is given the result`, async t => {
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
    t.true(sessionCookies(late).length > 0, 'the refreshed session is sent again')
    t.is(idp.tokenRequests.length, before + calls)
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: a kept result that has expired in turn is refreshed further along the chain`, async t => {
    const overrides = { refresh: { keepSeconds: 10_000 } }
    const { browser, clock, idp } = await startSignedIn(t, { mode, overrides })
    const oldest = browser.clone()
    clock.advanceSeconds(3600)
    await browser.fetch('/api/auth/profile')
    clock.advanceSeconds(3600)
    const before = idp.tokenRequests.length
    t.is((await oldest.fetch('/api/auth/profile')).statusCode, 200)
    t.is(idp.tokenRequests.length, before + calls)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200, 'the tab in between comes along')
    t.is(idp.tokenRequests.length, before + calls)
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: invalid_grant ends the session with 401, an empty body and its cookies taken back`, async t => {
    const { browser, clock, idp, logs } = await startSignedIn(t, { mode })
    clock.advanceSeconds(3600)
    idp.endAllGrants()
    const response = await browser.fetch('/api/auth/profile')
    t.is(response.statusCode, 401)
    t.is(response.body.length, 0)
    t.true(sessionCookies(response).every(({ value }) => value === ''))
    t.is(browser.cookies.value('platform_session'), undefined)
    t.truthy(logs.find(({ event, outcome }) => event === 'refresh' && outcome === 'rejected'))
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
  })

  const passing: Readonly<Record<string, Fault>> = {
    'a server error': faults.status(500),
    'a gateway error': faults.status(503),
    'a page': faults.html(),
    'an error page': faults.html(502),
    'a redirect': faults.redirect('https://elsewhere.example/'),
    'too many requests': faults.tooManyRequests(7),
    'a cut connection': faults.reset('before'),
    'an empty answer': faults.empty(),
    'broken JSON': faults.notJson(),
    'a giant answer': faults.giant(),
    'a refused client': faults.error('invalid_client', 401),
    'a refused client, said by the gateway': faults.gateway(),
    'a grant error with a server status': faults.error('invalid_grant', 500)
  }
  for (const [name, fault] of Object.entries(passing)) {
    test(`${mode}: ${name} in place of new tokens is 503 with Retry-After, and the session stays`, async t => {
      const { browser, clock, idp } = await startSignedIn(t, { mode })
      clock.advanceSeconds(3600)
      const cookies = browser.cookies.all().map(({ name, value }) => [name, value])
      idp.failWhen('token', () => fault)
      const response = await browser.fetch('/api/auth/profile')
      t.is(response.statusCode, 503)
      t.is(response.json().error, 'temporarily_unavailable')
      t.regex(String(response.headers['retry-after']), /^[1-9]\d*$/)
      t.deepEqual(response.setCookies, [])
      t.deepEqual(
        browser.cookies.all().map(({ name, value }) => [name, value]),
        cookies
      )
      idp.heal()
      // After a 429 a whole refresh may begin one second later than a second step.
      clock.advanceSeconds(Number(response.headers['retry-after']) + 1)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      t.deepEqual(idp.reuses, [])
    })
  }

  const useless: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    'no access token': { access_token: undefined },
    'a number for an access token': { access_token: 42 },
    'a lifetime in words': { expires_in: '3600' },
    'a negative lifetime': { expires_in: -1 },
    'no lifetime': { expires_in: undefined },
    'a token of another type': { token_type: 'mac' }
  }
  for (const [name, members] of Object.entries(useless)) {
    test(`${mode}: ${name} is 503, and the refresh token of the answer is kept`, async t => {
      const { browser, clock, idp } = await startSignedIn(t, { mode })
      clock.advanceSeconds(3600)
      idp.failWhen('token', () => faults.change(members))
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 503)
      idp.heal()
      clock.advanceSeconds(1)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      t.deepEqual(idp.reuses, [])
    })
  }

  test(`${mode}: a client that the provider rejects is the operator's problem, and is logged as an error`, async t => {
    const { browser, clock, idp, logs } = await startSignedIn(t, { mode })
    clock.advanceSeconds(3600)
    idp.failWhen('token', () => faults.error('invalid_client', 401))
    await browser.fetch('/api/auth/profile')
    const line = logs.find(({ event, level }) => event === 'refresh_failed' && level === 50)
    t.like(line?.err, { error: 'invalid_client' })
  })

  test(`${mode}: a failed refresh is remembered for a moment, for any number of waiting pages`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode })
    clock.advanceSeconds(3600)
    idp.failWhen('token', () => faults.tooManyRequests(7))
    const before = idp.tokenRequests.length
    const statuses = new Set<number>()
    for (let page = 0; page < 20; page++) statuses.add((await browser.fetch('/api/auth/profile')).statusCode)
    t.deepEqual(statuses, new Set([503]))
    t.is(idp.tokenRequests.length, before + 1)
    t.is((await browser.fetch('/api/auth/profile')).headers['retry-after'], '7')
    clock.advanceSeconds(8)
    await browser.fetch('/api/auth/profile')
    t.is(idp.tokenRequests.length, before + 2, 'the provider is asked again once its time is over')
  })

  test(`${mode}: an answer without a refresh token keeps the old one`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode })
    const first = idp.issued.refreshTokens.at(-1)?.value
    const body = {
      access_token: 'a-token-from-a-provider-that-does-not-rotate',
      token_type: 'Bearer',
      expires_in: 3599
    }
    idp.failWhen('token', () => faults.answer({ status: 200, body }))
    const before = idp.tokenRequests.length
    for (let refresh = 1; refresh <= 3; refresh++) {
      clock.advanceSeconds(3600)
      const response = await browser.fetch(mode === 'dual' ? '/api/auth/token' : '/api/auth/profile')
      // The made-up access token is unknown at user info, which is no matter here.
      t.is(response.statusCode, mode === 'dual' ? 200 : 502)
      t.is(idp.tokenRequests.length, before + refresh * calls)
    }
    const sent = idp.tokenRequests.slice(before).map(({ form }) => form.refresh_token)
    t.deepEqual(new Set(sent), new Set([first]))
  })

  test(`${mode}: a margin refreshes early, and a failure then serves the token that is still good`, async t => {
    const overrides = { refresh: { marginSeconds: 120 } }
    const { browser, clock, idp } = await startSignedIn(t, { mode, overrides })
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
    t.true(sessionCookies(await browser.fetch('/api/auth/profile')).length > 0)
    t.is(idp.tokenRequests.length, before + 1 + calls)
  })

  test(`${mode}: a margin longer than the token lives does not refresh at every request`, async t => {
    const overrides = { refresh: { marginSeconds: 120 } }
    const { browser, clock, idp } = await startTestServer(t, { mode, overrides })
    idp.settings.accessTokenLifetimeSeconds = 60
    await signIn(browser)
    const before = idp.tokenRequests.length
    for (let request = 0; request < 5; request++) await browser.fetch('/api/auth/profile')
    t.is(idp.tokenRequests.length, before)
    clock.advanceSeconds(31)
    await browser.fetch('/api/auth/profile')
    t.is(idp.tokenRequests.length, before + calls)
  })

  test(`${mode}: the refreshed session reaches the browser although the profile then fails`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode })
    clock.advanceSeconds(3600)
    idp.failWhen('userinfo', () => faults.status(500))
    const failed = await browser.fetch('/api/auth/profile')
    t.is(failed.statusCode, 502)
    t.true(sessionCookies(failed).length > 0)
    idp.heal()
    const before = idp.tokenRequests.length
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.is(idp.tokenRequests.length, before)
  })

  test(`${mode}: a client that goes away during a refresh finds its result with the old cookie`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode })
    clock.advanceSeconds(3600)
    const hold = idp.hold('token')
    const gone = new AbortController()
    const request = browser.fetch('/api/auth/profile', { signal: gone.signal })
    await hold.arrived()
    gone.abort()
    await t.throwsAsync(request)
    hold.release()
    const before = idp.tokenRequests.length
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    t.true(idp.tokenRequests.length <= before + calls - 1, 'only what was left of the same refresh')
    t.deepEqual(idp.reuses, [])
  })

  test(`${mode}: a logout during a refresh wins, and the token that arrives late is revoked`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode })
    const other = browser.clone()
    clock.advanceSeconds(3600)
    const hold = idp.hold('token')
    const refresh = other.fetch('/api/auth/profile')
    await hold.arrived()
    t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
    hold.release()
    const answer = await refresh
    t.is(answer.statusCode, 401)
    t.is(answer.body.length, 0)
    t.is((await other.fetch('/api/auth/profile')).statusCode, 401)
    const newest = idp.issued.refreshTokens.at(-1)?.value as string
    await eventually(() => idp.revoked.includes(newest))
  })

  for (const outcome of ['answers', 'goes away']) {
    test(`${mode}: a logout while the profile waits for a provider that ${outcome} is not undone by its refreshed session`, async t => {
      const { browser, clock, idp } = await startSignedIn(t, { mode })
      clock.advanceSeconds(3600)
      const hold = idp.hold('userinfo')
      const profile = browser.fetch('/api/auth/profile')
      await hold.arrived()
      t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
      if (outcome === 'answers') hold.release()
      else await idp.offline()
      const answer = await profile
      t.is(answer.statusCode, outcome === 'answers' ? 401 : 502)
      if (outcome === 'answers') t.deepEqual([answer.text(), answer.headers['content-type']], ['', undefined])
      t.deepEqual(sessionCookies(answer), [])
      t.deepEqual(browser.cookies.all(), [])
    })
  }

  test(`${mode}: every refresh writes one line with what an operator wants to know`, async t => {
    const { browser, clock, logs } = await startSignedIn(t, { mode })
    clock.advanceSeconds(3600)
    const old = browser.clone()
    await browser.fetch('/api/auth/profile', { headers: { 'x-request-id': 'request-1' } })
    await old.fetch('/api/auth/profile', { headers: { 'x-request-id': 'request-2' } })
    const [refreshed, kept, ...more] = logs.entries.filter(({ event }) => event === 'refresh')
    t.deepEqual(more, [])
    t.like(refreshed, {
      mode,
      outcome: 'refreshed',
      provider_calls: calls,
      lifetime_seconds: 3599,
      request_id: 'request-1'
    })
    t.like(kept, { mode, outcome: 'kept', provider_calls: 0, request_id: 'request-2' })
    t.is(typeof refreshed?.duration_ms, 'number')
    t.regex(String(refreshed?.session), /^[\w-]{8}$/)
    t.is(kept?.session, refreshed?.session, 'one session keeps its name through refreshes')
  })

  test(`${mode}: a clock five minutes fast or slow still logs in and refreshes`, async t => {
    for (const offset of [-300, 300]) {
      const { browser, clock, idp } = await startTestServer(t, { mode, parts: {} })
      clock.advanceSeconds(offset)
      await signIn(browser)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      clock.advanceSeconds(3600)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      t.deepEqual(idp.reuses, [])
    }
  })
}

test('dual: if only the second token request of a refresh fails, the result of the first is kept and the next request continues from it', async t => {
  const { browser, clock, idp } = await startSignedIn(t, { mode: 'dual' })
  clock.advanceSeconds(3600)
  idp.fail('token', faults.none, faults.status(500))
  const partial = await browser.fetch('/api/auth/token')
  t.is(partial.statusCode, 503)
  t.true(sessionCookies(partial).length > 0, 'the rotated refresh token reaches the browser')
  clock.advanceSeconds(2)
  const next = await browser.fetch('/api/auth/token')
  t.is(next.statusCode, 200)
  const publicTokens = idp.issued.accessTokens.filter(({ scope }) => scope === 'viewables:read')
  t.is(next.json().access_token, publicTokens.at(-1)?.value)
  t.deepEqual(idp.reuses, [])
})

test('dual: a request with the first cookie gets the result of the second refresh, whose response was lost', async t => {
  const { browser, clock, idp } = await startSignedIn(t, { mode: 'dual' })
  const old = browser.clone()
  clock.advanceSeconds(3600)
  idp.fail('token', faults.none, faults.status(503))
  t.is((await browser.fetch('/api/auth/token')).statusCode, 503)
  clock.advanceSeconds(2)
  t.is((await old.fetch('/api/auth/token')).statusCode, 200)
  t.deepEqual(idp.reuses, [])
})

test('dual: invalid_grant at the second refresh ends the session', async t => {
  const { browser, clock, idp } = await startSignedIn(t, { mode: 'dual' })
  clock.advanceSeconds(3600)
  idp.fail('token', faults.none, faults.error('invalid_grant'))
  const response = await browser.fetch('/api/auth/token')
  t.is(response.statusCode, 401)
  t.is(response.body.length, 0)
  t.is(browser.cookies.value('platform_session'), undefined)
})

test('dual: a public token with more than the public scopes is refused, and nothing of it leaks', async t => {
  const { browser, clock, idp, recorder, logs } = await startSignedIn(t, { mode: 'dual' })
  clock.advanceSeconds(3600)
  idp.fail('token', faults.none, faults.change({ scope: 'data:read viewables:read' }))
  const response = await browser.fetch('/api/auth/token')
  t.is(response.statusCode, 503)
  recorder.assertNone(t, idp.secrets({ except: 'viewables:read' }), logs.lines)
  const refused = idp.issued.accessTokens.at(-1)?.value as string
  recorder.assertNone(t, [refused], logs.lines)
  clock.advanceSeconds(2)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200, 'the session goes on with the newest refresh token')
  t.deepEqual(idp.reuses, [])
})

test('a refreshed session that is too large for its cookies is logged, and continues once its tokens fit again', async t => {
  const { browser, clock, idp, logs } = await startSignedIn(t, {})
  const cookie = browser.cookies.value('platform_session')
  clock.advanceSeconds(3600)
  idp.settings.accessTokenLength = 16_000
  for (let time = 0; time < 2; time += 1) {
    const response = await browser.fetch('/api/auth/profile')
    t.is(response.statusCode, 500)
    t.is(response.json().error, 'session_too_large')
    t.is(browser.cookies.value('platform_session'), cookie)
  }
  const line = logs.find(({ event, error }) => event === 'request_failed' && error === 'session_too_large')
  t.is(line?.level, 50)
  t.is(idp.tokenRequests.length, 2, 'nobody sends a spent refresh token')
  clock.advanceSeconds(3600)
  idp.settings.accessTokenLength = 600
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.not(browser.cookies.value('platform_session'), cookie)
  t.deepEqual(idp.reuses, [])
})

test('a slow provider is given up after the configured time, and the session stays', async t => {
  const { browser, clock, idp } = await startSignedIn(t, {})
  // Impatience would spoil the login on a slow machine, so that another replica has it.
  const impatient = await startTestServer(t, { idp, clock, overrides: { platform: { timeoutSeconds: 0.2 } } })
  impatient.connect(browser)
  clock.advanceSeconds(3600)
  idp.failWhen('token', () => faults.hang())
  const response = await browser.fetch('/api/auth/profile')
  t.is(response.statusCode, 503)
  t.deepEqual(response.setCookies, [])
})

test('an outage of the provider affects neither active sessions nor static files', async t => {
  const { browser, idp } = await startSignedIn(t, { mode: 'dual' })
  await idp.offline()
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  t.is((await browser.get('/')).statusCode, 200)
  t.is((await browser.get('/readyz')).statusCode, 200)
  await idp.online()
})

test('a thousand requests at once on one expired session refresh it once', async t => {
  // On a busy machine a thousand connections need longer than a client usually may.
  const limits = { headersTimeout: 120_000, requestTimeout: 120_000 }
  const { browser, clock, idp } = await startSignedIn(t, { mode: 'dual', logLevel: 'warn', limits })
  const before = idp.tokenRequests.length
  clock.advanceSeconds(3600)
  const tabs = Array.from({ length: 20 }, () => browser.clone())
  const answers = await Promise.all(tabs.flatMap(tab => Array.from({ length: 50 }, () => tab.fetch('/api/auth/token'))))
  t.is(answers.filter(({ statusCode }) => statusCode === 200).length, 1000)
  t.is(new Set(answers.map(answer => answer.json().access_token)).size, 1)
  t.is(idp.tokenRequests.length, before + 2)
})
