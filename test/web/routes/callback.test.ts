import test, { type ExecutionContext } from 'ava'
import { newBrowserId } from '#src/login/transaction.js'
import type { Browser, BrowserResponse } from '../../helpers/browser.js'
import { findSecrets } from '../../helpers/byte-recorder.js'
import { assertCases } from '../../helpers/case-file.js'
import { createClock } from '../../helpers/clock.js'
import { publicOrigin } from '../../helpers/config.js'
import { eventually } from '../../helpers/eventually.js'
import { type Fault, faults } from '../../helpers/hostile-idp/index.js'
import { modes } from '../../helpers/modes.js'
import { openCallback, signIn, startLogin, startTestServer, type TestServer } from '../../helpers/server.js'
import { words } from '../../helpers/words.js'
import {
  authorize,
  expired,
  followToCallback,
  guarded,
  httpsCallbackUrl,
  loginCookieName,
  openedSession,
  parameter,
  refreshOf,
  sessionCookies,
  sessionHeader,
  startDiscovered,
  startSignedIn,
  statusesOf,
  withParameters
} from '../support.js'

const callbackPath = '/api/auth/callback'

/** Starts a server and a browser that has a session and has begun another login, which is about to return to `back`. */
async function startReturning(t: ExecutionContext, options: Parameters<typeof startTestServer>[1] = {}) {
  const server = await startSignedIn(t, options)
  const back = await startLogin(server.browser, '/after')
  return { ...server, back, calls: server.idp.tokenRequests.length, session: sessionHeader(server.browser) }
}

/** Asserts that the callback was rejected with `status`, exchanged no code and changed no cookie of the browser. */
function assertRefused(
  t: ExecutionContext,
  response: BrowserResponse,
  status: number,
  { browser, idp, calls, session }: Pick<TestServer, 'browser' | 'idp'> & { calls: number; session: string },
  what = ''
) {
  t.is(response.statusCode, status, what)
  t.deepEqual(response.setCookies, [], what)
  t.is(response.headers.location, undefined, what)
  t.is(idp.tokenRequests.length, calls, what)
  t.is(sessionHeader(browser), session, what)
}

// The login that a callback belongs to.

test('a state that is missing or not sealed by this deployment is rejected, with a code and with an error', async t => {
  const server = await startReturning(t)
  const { back, browser } = server
  const state = parameter(back, 'state')
  const flipped = (at: number) => state.slice(0, at) + (state[at] === 'A' ? 'B' : 'A') + state.slice(at + 1)
  const ofCookies = [sessionCookies(browser)[0]?.[1].slice(1), browser.cookies.value(loginCookieName)]
  const states = [
    ...[undefined, '', 'x', 'undefined', 'A'.repeat(300), ...ofCookies],
    ...[0, 1, 8, 30, Math.floor(state.length / 2), state.length - 30].map(flipped),
    ...[state.slice(0, -4), `${state}AAAA`, `${state}.`, `${state}=`, state.toLowerCase()]
  ]
  const denied = { code: undefined, error: 'access_denied' }
  // Some providers leave the state out of an error.
  await openCallback(browser, withParameters(back, { ...denied, state: undefined }))
  t.like(server.logs.first('login_failed'), { reason: 'invalid_request', error_code: 'access_denied' })
  for (const other of states) {
    for (const response of [{}, denied]) {
      const refused = await openCallback(browser, withParameters(back, { ...response, state: other }))
      assertRefused(t, refused, 400, server, other)
      t.regex(refused.text(), other ? /state_mismatch/ : /invalid_request/)
    }
  }
  t.is((await openCallback(browser, back)).headers.location, '/after', 'the login can still be finished')
})

/** How a login loses its way back: the login cookie is missing or another one, or the login took too long. */
const strays = {
  login_cookie_missing: ({ browser }: TestServer) => browser.cookies.delete(loginCookieName),
  state_mismatch: ({ browser }: TestServer) =>
    browser.cookies.set(loginCookieName, newBrowserId(), new URL(publicOrigin)),
  login_expired: ({ clock }: TestServer) => clock.advanceSeconds(601)
} as const

for (const [reason, lose] of Object.entries(strays)) {
  test(`${reason}: a browser that is signed in is sent to the path of the login, and the code is not sent`, async t => {
    const server = await startReturning(t)
    const { browser, back, idp, calls, session, logs } = server
    lose(server)
    for (const url of [back, expired(back)]) {
      const response = await openCallback(browser, url)
      t.deepEqual([response.statusCode, response.headers.location, response.setCookies], [303, '/after', []])
    }
    t.is(idp.tokenRequests.length, calls)
    t.is(sessionHeader(browser), session)
    t.like(logs.first('login_not_needed'), { level: 'info', reason })
  })

  test(`${reason}: without a session, the login starts once more with the same path and prompt, and then a page has the way on`, async t => {
    const server = await startTestServer(t)
    const { browser, idp, logs } = server
    const back = await authorize(browser, '/api/auth/login?prompt=login&return_to=/after')
    lose(server)
    const cookie = browser.cookies.value(loginCookieName)
    const started = await openCallback(browser, back)
    const ofExpiredPage = await openCallback(browser, expired(back))
    t.is(ofExpiredPage.headers.location, started.headers.location)
    const again = await followToCallback(browser, started)
    t.is(idp.requestsTo('authorize').at(-1)?.query.prompt, 'login')
    if (cookie !== undefined) t.is(browser.cookies.value(loginCookieName), cookie, 'the login cookie of the browser')
    t.like(logs.first('login_restarted'), { level: 'info', reason })
    t.deepEqual(idp.tokenRequests, [])
    const twin = browser.clone()
    t.is((await openCallback(twin, again)).headers.location, '/after')
    t.is((await twin.fetch(guarded)).statusCode, 200)
    lose(server)
    const page = await openCallback(browser, again)
    t.is(page.statusCode, 400)
    t.regex(page.text(), new RegExp(reason))
    t.regex(page.text(), /href="(?:http:\/\/localhost:8080)?\/api\/auth\/login\?prompt=login&#38;return_to=%2Fafter"/)
    t.is(idp.tokenRequests.length, 1)
    t.is(logs.all('login_failed').at(-1)?.reason, reason)
  })

  test(`${reason}: a login that asks for a prompt starts once more although the browser is signed in`, async t => {
    const server = await startSignedIn(t)
    const back = await authorize(server.browser, '/api/auth/login?prompt=login&return_to=/after')
    lose(server)
    const again = await followToCallback(server.browser, await openCallback(server.browser, back))
    t.is((await openCallback(server.browser, again)).headers.location, '/after')
  })

  test(`${reason}: a login that was completed before, and whose session is over, gets a page and does not sign in again`, async t => {
    const server = await startTestServer(t)
    const { browser, idp } = server
    const back = await startLogin(browser)
    await openCallback(browser, back)
    await browser.navigate('/api/auth/logout')
    lose(server)
    const page = await openCallback(browser, back)
    t.is(page.statusCode, 400)
    t.regex(page.text(), /code_reused/, 'a missing login cookie is not the reason')
    t.deepEqual(page.setCookies, [])
    t.is(idp.requestsTo('authorize').length, 1)
    t.is(idp.tokenRequests.length, 1)
  })

  test(`${reason}: an error of the provider, a wrong issuer, an old login, and a request that is no navigation get a page`, async t => {
    const server = await startReturning(t)
    const { clock, calls, idp, newBrowser } = server
    const stranger = newBrowser()
    const attempts: Readonly<Record<string, (back: string) => Promise<BrowserResponse>>> = {
      error: back => openCallback(stranger, withParameters(back, { code: undefined, error: 'access_denied' })),
      image: back => stranger.get(back, { headers: { 'sec-fetch-mode': 'no-cors', 'sec-fetch-site': 'same-site' } }),
      prefetch: back => stranger.get(back, { headers: { 'sec-purpose': 'prefetch' } }),
      old: back => {
        clock.advanceSeconds(86_400)
        return openCallback(stranger, back)
      }
    }
    for (const [what, open] of Object.entries(attempts)) {
      const back = await startLogin(stranger)
      lose({ ...server, browser: stranger })
      const response = await open(back)
      t.true([400, 403].includes(response.statusCode), what)
      t.deepEqual(response.setCookies, [], what)
      t.false(what === 'error' && response.text().includes('You signed in'), 'nobody has signed in')
    }
    t.like(server.logs.first('login_failed'), { error_code: 'access_denied' })
    t.is(idp.tokenRequests.length, calls)
  })
}

test('a planted callback of another browser leads to a login by the victim or to the path, and the code is never sent', async t => {
  const server = await startReturning(t)
  const { browser, newBrowser, idp, calls } = server
  const attacker = newBrowser()
  const planted = await startLogin(attacker, '/planted')
  t.is((await openCallback(browser, planted)).headers.location, '/planted')
  const anonymous = newBrowser()
  const own = await followToCallback(anonymous, await openCallback(anonymous, planted))
  t.not(parameter(own, 'code'), parameter(planted, 'code'))
  t.is(idp.tokenRequests.length, calls)
  t.is((await openCallback(attacker, planted)).statusCode, 302, 'the attacker can still finish the login')
})

for (const [whose, scopes, subs, secondsAfter, sibling] of [
  ['and not the one of the same user that another tab has got since', ['openid'], ['user-1', 'user-1'], 90, 200],
  ['and not the one of the same user that another tab got just before', ['openid'], ['user-1', 'user-1'], -59, 200],
  ['and the one of the same user from a minute before', ['openid'], ['user-1', 'user-1'], -60, 401],
  ['and the one of another user', ['openid'], ['user-1', 'user-2'], 1, 401],
  ['and not the one that another tab got then, if no user is known', ['read'], [], 1, 200],
  ['and the one that another tab got a minute later, if no user is known', ['read'], [], 60, 401]
] as const) {
  test(`a login ends the session that the browser had before it began, ${whose}`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { settings: { platform: { scopes: [...scopes] } } })
    const earlier = browser.clone()
    clock.advanceSeconds(3600)
    const signInAs = (back: string, sub?: string) => {
      idp.settings.idTokenClaims = claims => ({ ...claims, sub })
      idp.settings.profile = { ...idp.settings.profile, sub }
      return openCallback(browser, back)
    }
    const otherTab = await startLogin(browser)
    const thisTab = secondsAfter > 0 ? await startLogin(browser) : undefined
    clock.advanceSeconds(Math.max(0, secondsAfter))
    await signInAs(otherTab, subs[0])
    const other = browser.clone()
    clock.advanceSeconds(Math.max(0, -secondsAfter))
    await signInAs(thisTab ?? (await startLogin(browser)), subs[1])
    t.not(sessionHeader(other), sessionHeader(browser))
    t.deepEqual(statusesOf([await earlier.fetch(guarded), await other.fetch(guarded), await browser.fetch(guarded)]), [
      401,
      sibling,
      200
    ])
  })
}

test('the path of a stray login is checked again', async t => {
  const rules = ['GET /api/delete/** http://127.0.0.1:9/** no-links']
  const { browser, idp } = await startTestServer(t, { settings: { apiProxy: { rules } } })
  const other = await startTestServer(t, { idp })
  const back = await startLogin(other.browser, '/api/delete/1')
  const again = await followToCallback(browser, await openCallback(browser, back))
  t.is((await openCallback(browser, again)).headers.location, '/')
  t.is((await openCallback(browser, back)).headers.location, '/')
})

// The parameters of the callback.

test('repeated, overlong, unprintable, contradictory and missing parameters are rejected, and no code is exchanged, but unknown ones are ignored', async t => {
  const server = await startReturning(t)
  const { browser, back } = server
  const state = parameter(back, 'state')
  const code = parameter(back, 'code')
  const long = 'a'.repeat(4097)
  const unprintable = words`%00 %0d%0a %09 %7f %ff %c3%28 %e2%82 %ed%a0%80 %c3%a9 %f0%9f%98%80`
  // In each query, STATE and CODE stand for the right values.
  const queries = words`
    code=CODE&code=CODE&state=STATE code=CODE&code=other&state=STATE code=CODE&state=STATE&state=STATE
    code=CODE&state=STATE&state= code=CODE&state=STATE&iss=a&iss=a
    error=access_denied&error=access_denied&state=STATE error=access_denied&error_uri=a&error_uri=b&state=STATE
    error=access_denied&error_description=a&error_description=b&state=STATE
    code[]=CODE&state=STATE code[a]=CODE&state=STATE code=CODE&state[]=STATE
    code=CODE&state=${long} code=CODE&state=STATE&iss=${long}
    code=CODE&state=STATE&error=access_denied
    state=STATE code=&state=STATE code=&error=&state=STATE error_description=no+error&state=STATE`
  const withBytes = unprintable.flatMap(
    bad => words`
      code=a${bad}b&state=STATE code=CODE&state=STATE${bad} code=CODE&state=STATE&iss=a${bad}b`
  )
  for (const query of ['', ...queries, ...withBytes]) {
    const response = await browser.get(`${callbackPath}?${query.replaceAll('CODE', code).replaceAll('STATE', state)}`)
    assertRefused(t, response, 400, server, query.slice(0, 200))
    t.is(response.json().error, 'invalid_request')
  }
  for (const error of [long, ...unprintable]) {
    const page = await openCallback(browser, `${callbackPath}?error=${error}&state=${state}`)
    assertRefused(t, page, 400, server, error.slice(0, 9))
    t.regex(page.text(), /return_to=%2Fafter/, error.slice(0, 9))
  }
  const unknown = '&session_state=a&session_state=b&x[]=%ff&utm=1'
  t.is((await openCallback(browser, back + unknown)).headers.location, '/after')
})

test('a code may be as long as the headers allow', async t => {
  const { browser, idp, back, calls } = await startReturning(t)
  const code = 'a'.repeat(12_000)
  const response = await openCallback(browser, withParameters(back, { code }))
  t.regex(response.text(), /code_rejected/)
  t.is(idp.tokenRequests.length, calls + 1)
  t.is(idp.tokenRequests.at(-1)?.form.code, code)
})

test('a callback with the issuer of another provider is rejected, whether it has a code or an error', async t => {
  const started = await startDiscovered(t)
  const { browser, idp } = started
  const server = { ...started, calls: 0, session: '' }
  for (const iss of ['https://evil.example', `${idp.issuer}/`, idp.issuer.toUpperCase()]) {
    const back = withParameters(await startLogin(browser), { iss })
    assertRefused(t, await openCallback(browser, back), 400, server, iss)
    const denied = withParameters(back, { code: undefined, error: 'access_denied' })
    assertRefused(t, await openCallback(browser, denied), 400, server, iss)
    t.like(server.logs.all('login_failed').at(-1), { reason: 'issuer_mismatch', iss, error_code: 'access_denied' })
  }
  for (const login of [{}, { iss: idp.issuer }]) {
    idp.settings.login = login
    t.is((await signIn(browser)).statusCode, 302, 'the right issuer and no issuer are accepted')
  }
})

test('a callback without an issuer is rejected if the discovery document says that the provider sends one', async t => {
  const server = await startDiscovered(t)
  server.idp.discovery = document => ({ ...document, authorization_response_iss_parameter_supported: true })
  const back = await startLogin(server.browser)
  assertRefused(t, await openCallback(server.browser, back), 400, { ...server, calls: 0, session: '' })
  const named = withParameters(back, { iss: server.idp.issuer })
  t.is((await openCallback(server.browser, named)).statusCode, 302)
})

test('any iss parameter is accepted if the issuer is not known, and any ID token without the scope openid', async t => {
  const { browser, idp } = await startTestServer(t)
  idp.settings.login = { iss: 'https://whoever.example' }
  idp.fail('token', faults.change({ id_token: 'whatever' }))
  t.is((await signIn(browser)).statusCode, 302)
})

test("if the provider rejected the login, the response has one of the built-in texts and none of the provider's", async t => {
  const server = await startReturning(t)
  const { back, browser } = server
  const words = { error_description: '<script>alert("quoted")</script>', error_uri: 'https://evil.example/help' }
  await assertCases(t, 'test/web/routes/provider-errors.txt', async error => {
    const url = withParameters(back, { code: undefined, error, ...words })
    const json = await browser.get(url)
    const { statusCode, headers } = json
    assertRefused(t, json, statusCode, server, error)
    t.is(headers['retry-after'] !== undefined, statusCode === 503, error)
    const page = await openCallback(browser, url)
    assertRefused(t, page, statusCode, server, error)
    t.is(refreshOf(page), undefined, 'the same URL would have the same error')
    for (const response of [json, page]) {
      const text = response.text().replaceAll(String(response.headers['x-request-id']), '')
      t.notRegex(text, /<script>|alert|quoted|evil\.example|0800/)
    }
    const { error: code, error_description: description } = json.json()
    const logged = statusCode === 400 && server.logs.all('login_failed').at(-1)?.error_code
    return `${statusCode} ${code}, logged ${logged || 'nothing'}: ${description}`
  })
  t.is((await browser.fetch(guarded)).statusCode, 200)
  t.is((await openCallback(browser, back)).statusCode, 302, 'the login can still be finished')
})

// Successful logins.

for (const mode of modes) {
  test(`a new login in ${mode} mode replaces the previous session, even if another user had planted that session`, async t => {
    const server = await startTestServer(t, { mode })
    const { browser, newBrowser } = server
    const attacker = newBrowser()
    await signIn(attacker)
    for (const [name, value] of sessionCookies(attacker)) browser.cookies.set(name, value, new URL(publicOrigin))
    const planted = openedSession(browser, server)
    await signIn(browser)
    const own = openedSession(browser, server)
    for (const field of Object.keys(planted) as (keyof typeof planted)[]) {
      const mayBeEqual = ['expires_at', '_rev', '_login', '_issued', '_expire'].includes(field)
      if (!mayBeEqual) t.not(own[field], planted[field], field)
    }
    // A logout with the planted session does not end the new session.
    await attacker.navigate('/api/auth/logout')
    t.is((await browser.fetch(guarded)).statusCode, 200)
  })
}

test('a session too large for four cookies is an error with its sizes in the log, and the previous session stays', async t => {
  const server = await startReturning(t)
  const { back, browser, calls, idp, logs } = server
  idp.settings.accessTokenLength = 16_000
  const response = await browser.get(back)
  assertRefused(t, response, 500, { ...server, calls: calls + 1 })
  t.is(response.json().error, 'session_too_large')
  t.is((await browser.fetch(guarded)).statusCode, 200)
  const unused = idp.issued.refreshTokens.at(-1)?.value as string
  await eventually(() => idp.revoked.includes(unused))
  const line = logs.lines.find(line => line.includes('session_too_large') && line.includes('"level":"error"')) ?? ''
  t.regex(line, /"token":16000/)
  t.deepEqual(findSecrets([Buffer.from(line)], idp.secrets()), [])
})

test('the callback URL may contain a query', async t => {
  const callbackUrl = `${publicOrigin}${callbackPath}?tenant=a`
  const { browser, idp } = await startTestServer(t, { settings: { platform: { callbackUrl } } })
  const back = await startLogin(browser)
  t.true(back.startsWith(`${callbackUrl}&`))
  const callback = await openCallback(browser, back)
  t.is(callback.headers.location, '/')
  t.is(idp.tokenRequests[0]?.form.redirect_uri, callbackUrl)
})

// Repeated and simultaneous callbacks.

/** Returns a browser with the login cookie of `browser` and no session, as if the response of its callback had been lost. */
function withoutSession(browser: Browser): Browser {
  const copy = browser.clone()
  for (const [name] of sessionCookies(copy)) copy.cookies.delete(name)
  return copy
}

test('a repeated callback redirects and does not change the session, even with another code or after a refresh, and is rejected in another browser', async t => {
  const { browser, back, clock, idp, newBrowser } = await startReturning(t)
  idp.settings.accessTokenLifetimeSeconds = 100
  await openCallback(browser, back)
  const codes = () => idp.tokenRequests.filter(({ form }) => form.grant_type === 'authorization_code').length
  const code = parameter(await startLogin(newBrowser()), 'code')
  for (const [seconds, url] of [
    [0, back],
    [30, back],
    [170, back],
    [0, withParameters(back, { code })]
  ] as const) {
    clock.advanceSeconds(seconds)
    t.is((await browser.fetch(guarded)).statusCode, 200)
    const session = sessionHeader(browser)
    const again = await openCallback(browser, url)
    t.deepEqual([again.statusCode, again.headers.location, again.setCookies], [302, '/after', []])
    t.is(sessionHeader(browser), session)
  }
  const thief = newBrowser()
  t.is((await openCallback(thief, back)).statusCode, 400, 'the login was completed before')
  await thief.navigate('/api/auth/login')
  t.is((await openCallback(thief, back)).statusCode, 400)
  t.deepEqual(sessionCookies(thief), [])
  t.is(codes(), 2, 'one for each login of the first browser')
  t.deepEqual(idp.reuses, [])
})

for (const mode of modes) {
  test(`${mode}: if the response to a callback was lost, repeating the callback within a minute replaces the previous session`, async t => {
    const server = await startReturning(t, { mode })
    const { back, browser, calls, clock, idp } = server
    const unlucky = browser.clone()
    clock.advanceSeconds(1)
    await openCallback(browser, back)
    clock.advanceSeconds(58)
    const again = await openCallback(unlucky, back)
    t.deepEqual([again.statusCode, again.headers.location], [302, '/after'])
    t.is((await unlucky.fetch(guarded)).statusCode, 200)
    t.is(openedSession(unlucky, server)._id, openedSession(browser, server)._id)
    t.is(idp.tokenRequests.length, calls + (mode === 'dual' ? 2 : 1))
  })
}

test('a repeated callback of a new login replaces an older session that was refreshed meanwhile', async t => {
  const clock = createClock()
  const server = await startSignedIn(t, { clock, parts: { clock }, settings: { platform: { timeout: 10 } } })
  const { browser, idp } = server
  const id = () => openedSession(browser, server)._id
  const first = id()
  clock.advanceSeconds(3580)
  const back = await startLogin(browser)
  const hold = idp.hold('token', 'after')
  const waiting = openCallback(browser, back)
  await hold.arrived()
  // The request stops to wait after the time limit and a little more.
  for (const seconds of [10, 1]) clock.advanceSeconds(seconds)
  t.is((await waiting).statusCode, 504)
  hold.release()
  // Another tab refreshes the older session.
  clock.advanceSeconds(10)
  t.is((await browser.fetch(guarded)).statusCode, 200)
  t.is(id(), first)
  t.is((await openCallback(browser, back)).statusCode, 302)
  t.not(id(), first)
  t.is((await browser.fetch(guarded)).statusCode, 200)
  t.is(idp.tokenRequests.length, 3)
})

test('a repeated callback after the logout is rejected, even with cookies from before the logout, and does not change the session of a later login', async t => {
  const { browser, idp } = await startTestServer(t)
  const back = await startLogin(browser)
  const loginCookie = browser.cookies.value(loginCookieName) ?? ''
  await openCallback(browser, back)
  const kept = [browser.clone(), withoutSession(browser)]
  await browser.navigate('/api/auth/logout')
  for (const replay of [browser, ...kept]) {
    const response = await openCallback(replay, back)
    t.is(response.statusCode, 400)
    t.deepEqual(response.setCookies, [])
    t.is((await replay.fetch(guarded)).statusCode, 401)
  }
  t.is(idp.tokenRequests.length, 1)

  browser.cookies.set(loginCookieName, loginCookie, new URL(publicOrigin))
  await signIn(browser)
  const session = sessionHeader(browser)
  t.is((await openCallback(browser, back)).statusCode, 302)
  t.is(sessionHeader(browser), session)
  t.is(idp.tokenRequests.length, 2)
})

// Failures of the provider.

// The log line is an error if the provider rejects the client, so that the operator has to act.
type Failing = readonly [what: string, fault: Fault, status: number, level?: 'error']

// Further unusable members of a token response are listed in test/provider/token-set.test.ts.
const unusable: readonly Failing[] = [
  ['a wrong client secret', faults.error('invalid_client', 401), 502, 'error'],
  ['a client that the gateway rejects', faults.gateway(), 502, 'error'],
  ['a 401 with an empty body', faults.empty(401), 502, 'error'],
  ['a 4xx in HTML', faults.html(403), 502, 'error'],
  ['500', faults.status(500), 502],
  ['an empty response', faults.empty(200), 502],
  ['broken JSON', faults.notJson(), 502],
  ['an endless response', faults.giant(Number.POSITIVE_INFINITY), 502],
  ['no access token', faults.change({ access_token: undefined }), 502],
  ['a number as refresh token', faults.change({ refresh_token: 42 }), 502],
  ['a connection that is cut before the response', faults.reset(), 504],
  ['a connection that is cut after the tokens were issued', faults.reset('after'), 504],
  ['an incomplete response', faults.half(), 504]
]

const codeExchangeOnly: readonly Failing[] = [
  ['a code that the provider rejects', faults.error('invalid_grant'), 400],
  ['a code that GitHub rejects', faults.error('bad_verification_code', 200), 400],
  ['no refresh token', faults.change({ refresh_token: undefined }), 502]
]

for (const mode of modes) {
  test(`a failed code exchange in ${mode} mode is not repeated, and the previous session stays`, async t => {
    const server = await startSignedIn(t, { mode })
    const { browser, idp, logs } = server
    for (const [what, fault, status, level = 'warn'] of [...unusable, ...codeExchangeOnly]) {
      const state = { ...server, calls: idp.tokenRequests.length + 1, session: sessionHeader(browser) }
      const back = await startLogin(browser)
      idp.fail('token', fault)
      const response = await browser.get(back)
      assertRefused(t, response, status, state, what)
      t.is(levelOf(logs), level, what)
      if (status === 400) {
        const error_code = what.includes('GitHub') ? 'bad_verification_code' : 'invalid_grant'
        t.like(logs.all('login_failed').at(-1), { reason: 'code_rejected', error_code })
      }
      t.deepEqual(Object.keys(response.json()).sort(), ['error', 'error_description', 'request_id'], what)
      t.is((await browser.fetch(guarded)).statusCode, 200, what)
    }
  })
}

/** The level of the newest line about a failed login. */
function levelOf({ entries }: Pick<TestServer['logs'], 'entries'>) {
  return entries.findLast(({ event }) => event === 'request_failed' || event === 'login_failed')?.level
}

// Cognito ignores `scope` at a refresh, and only the access token says so.
const wideJwt = `e30.${btoa('{"scope":"viewables:read data:read"}')}.signature`

// In dual mode a login makes a second token request. It gets the public token, which has fewer scopes and is sent to browsers.
const publicTokenOnly: readonly Failing[] = [
  ['a refresh token that the provider rejects', faults.error('invalid_grant'), 502, 'error'],
  ['a rejected scope', faults.error('invalid_scope'), 502, 'error'],
  ['more scopes than the public scopes', faults.change({ scope: 'viewables:read data:read' }), 502],
  ['more scopes, named by the JWT only', faults.change({ scope: undefined, access_token: wideJwt }), 502]
]

test('if the request for the public token fails in dual mode, the login fails and its refresh token is revoked', async t => {
  const server = await startSignedIn(t, { mode: 'dual' })
  const { browser, idp, logs, recorder } = server
  for (const [what, fault, status, level = 'warn'] of [...unusable, ...publicTokenOnly]) {
    const state = { ...server, calls: idp.tokenRequests.length + 2, session: sessionHeader(browser) }
    const revoked = idp.revoked.length
    const back = await startLogin(browser)
    idp.fail('token', faults.none, fault)
    assertRefused(t, await browser.get(back), status, state, what)
    t.is(levelOf(logs), level, what)
    t.is((await browser.fetch('/api/auth/token')).statusCode, 200, what)
    await eventually(() => idp.revoked.length > revoked)
    const { grant } = idp.issued.accessTokens.at(-1) ?? {}
    const granted = idp.issued.refreshTokens.filter(token => token.grant === grant).map(({ value }) => value)
    t.is(idp.revoked.length, revoked + 1, what)
    t.true(granted.includes(idp.revoked.at(-1) ?? ''), what)
    if (what.startsWith('more scopes')) {
      t.is(idp.revoked.at(-1), granted.at(-1), 'the newest one is revoked')
      t.regex(JSON.stringify(logs.all('request_failed').at(-1)), /more than the public scopes \(data:read\)/)
    }
    t.deepEqual(
      granted.filter(token => idp.isAlive(token)),
      [],
      what
    )
  }
  recorder.assertNone(t, idp.secrets({ except: 'viewables:read' }))
})

const html = { headers: { accept: 'text/html' } }

for (const mode of modes) {
  test(`if the provider is busy in ${mode} mode, the callback gets 503, and repeating the callback later succeeds`, async t => {
    const { back, browser, calls, clock, idp, logs, session } = await startReturning(t, { mode })
    const busy: readonly (readonly [Fault, string])[] = [
      [faults.tooManyRequests(30), '30'],
      [faults.html(429), '5'],
      [faults.answer({ status: 503, headers: { 'retry-after': '2' } }), '2'],
      [faults.tooManyRequests(0), '1']
    ]
    for (const [fault, retryAfter] of busy) {
      idp.fail('token', fault)
      const page = await browser.get(back, html)
      t.is(page.statusCode, 503)
      t.is(page.headers['retry-after'], retryAfter)
      // Without a URL the browser loads the same URL again. A later load might send a code that the provider no longer accepts.
      t.is(refreshOf(page), retryAfter)
      t.regex(page.text(), /<h1>The service is busy<\/h1>[\s\S]*tries again by itself/)
      t.is(sessionHeader(browser), session)
      clock.advanceSeconds(Number(retryAfter))
    }
    t.is(idp.tokenRequests.length, calls + busy.length)
    const [line] = logs.all('request_failed')
    t.like(line, { level: 'warn', status: 503, err: { type: 'provider_throttled', endpoint: 'token', status: 429 } })
    t.is((await openCallback(browser, back)).headers.location, '/after')
    t.deepEqual(idp.requestsTo('revoke'), [])
  })
}

test('if the provider is busy after it has exchanged the code, the page leads to a new login', async t => {
  const { browser, idp } = await startTestServer(t, { mode: 'dual' })
  const back = await authorize(browser, '/api/auth/login?return_to=/a')
  idp.fail('token', faults.none, faults.tooManyRequests(11))
  t.is(refreshOf(await browser.get(back, html)), '11; url=/api/auth/login?return_to=%2Fa')
})

test('if the provider asks for a wait of more than 30 seconds or past the end of the login, the page leads to a new login with the same prompt, below the path prefix of the server', async t => {
  const settings = { platform: { callbackUrl: httpsCallbackUrl } }
  const { browser, clock, idp } = await startTestServer(t, { settings })
  const back = await authorize(
    browser,
    '/tools/viewer/api/auth/login?prompt=login&return_to=/tools/viewer/models?id=1%26x=;'
  )
  const login = '/tools/viewer/api/auth/login?prompt=login&return_to=%2Ftools%2Fviewer%2Fmodels%3Fid%3D1%26x%3D%3B'
  idp.fail('token', faults.tooManyRequests(31))
  t.is(refreshOf(await browser.get(back, html)), `31; url=${login}`)
  clock.advanceSeconds(590)
  idp.fail('token', faults.tooManyRequests(4), faults.tooManyRequests(6))
  t.is(refreshOf(await browser.get(back, html)), '4')
  clock.advanceSeconds(4)
  t.is(refreshOf(await browser.get(back, html)), `6; url=${login}`)
})
