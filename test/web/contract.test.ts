// Tests of the service contract (docs/reference/contract.md), section by section, for both modes. Each title contains the number of its section. In dual mode there are two
// access tokens: the internal token has all scopes and stays on the server, and the public token has fewer scopes and is sent
// to browsers.
import test, { type ExecutionContext } from 'ava'
import { pino } from 'pino'
import { dottedText } from '#src/base/text-encoding.js'
import { loadConfig } from '#src/config/load.js'
import { serve } from '#src/server/serve.js'
import { createBrowser } from '../helpers/browser.js'
import { publicOrigin } from '../helpers/config.js'
import { createHostileIdp, faults, type HostileIdp } from '../helpers/hostile-idp/index.js'
import { modes } from '../helpers/modes.js'
import { signIn, startTestServer } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'
import { words } from '../helpers/words.js'
import {
  customRoute,
  guarded,
  openedFields,
  openedSession,
  sealedHeader,
  sessionCookiesSet,
  sessionHeader,
  startSignedIn,
  startWithRoute
} from './support.js'

const callbackUrl = `${publicOrigin}/api/auth/callback`
const lifetimeMs = 3599 * 1000
const dayMs = 86_400_000
const protective = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin'
}

/** The values in which the two modes differ. */
const expected = {
  single: {
    loginScope: 'data:read account:read account:write',
    /** The scopes that the token requests of one refresh send, one entry for each request. */
    refreshScopes: ['data:read account:read account:write'],
    fields: ['expires_at', 'refresh_token', 'token'],
    serverToken: 'token',
    needsTokens: ['/api/auth/profile']
  },
  dual: {
    loginScope: 'data:read viewables:read',
    refreshScopes: ['data:read viewables:read', 'viewables:read'],
    fields: ['expires_at', 'internal_token', 'public_token', 'refresh_token'],
    serverToken: 'internal_token',
    needsTokens: ['/api/auth/profile', '/api/auth/token']
  }
} as const

const bearersAt = (idp: HostileIdp) => idp.requestsTo('userinfo').map(({ headers }) => headers.authorization)
const lastIssued = (idp: HostileIdp, scope: string) =>
  idp.issued.accessTokens.findLast(token => token.scope === scope)?.value

for (const mode of modes) {
  const { loginScope, refreshScopes, fields, serverToken, needsTokens } = expected[mode]
  const contract = (clause: string, run: (t: ExecutionContext) => Promise<void>) =>
    test(`service contract, ${mode} mode, section ${clause}`, run)

  contract('1: after a login at the identity provider the user stays logged in, and only in this browser', async t => {
    const { browser, idp, newBrowser } = await startTestServer(t, { mode })
    t.is((await browser.fetch(guarded)).statusCode, 401)
    const callback = await signIn(browser)
    t.is(callback.headers.location, '/')
    t.is(idp.requestsTo('authorize').length, 1)
    t.is((await browser.fetch(guarded)).statusCode, 200)
    t.is((await newBrowser().fetch(guarded)).statusCode, 401)
  })

  contract('1: static files come from wwwroot, and without an index.html there the path / is 404', async t => {
    const wwwroot = await tempFolder(t, { 'page.html': '<p>a page' })
    const { browser } = await startTestServer(t, { mode, settings: { wwwroot } })
    t.is((await browser.get('/page.html')).text(), '<p>a page')
    const landing = await browser.get((await signIn(browser)).headers.location ?? '')
    t.is(landing.statusCode, 404)
    t.is((await browser.get((await browser.get('/api/auth/logout')).headers.location ?? '')).statusCode, 404)
  })

  contract('1: the environment variables of the contract configure the server', async t => {
    const idp = await createHostileIdp(t, { callbackUrl, clientSecret: 'Rk81mZqPw0-yT4' })
    const env = {
      PLATFORM_AUTH_MODE: mode,
      PORT: '0',
      SERVER_SESSION_SECRET: 'kT7vQ2mXw9ZbR4nLs6YpC8dHf3JgA5eU',
      PLATFORM_CLIENT_ID: idp.clientId,
      PLATFORM_CLIENT_SECRET: idp.clientSecret,
      PLATFORM_CALLBACK_URL: callbackUrl,
      ...(mode === 'dual' && { INTERNAL_TOKEN_SCOPES: 'data:write bucket:read', PUBLIC_TOKEN_SCOPES: 'bucket:read' }),
      PLATFORM_AUTHORIZATION_ENDPOINT: idp.authorizationEndpoint,
      PLATFORM_TOKEN_ENDPOINT: idp.tokenEndpoint,
      PLATFORM_USERINFO_ENDPOINT: idp.userinfoEndpoint
    }
    const { config } = await loadConfig({ env, cwd: await tempFolder(t) })
    const server = await serve(config, { log: pino({ level: 'silent' }) })
    t.teardown(() => server.close())
    const connectTo = { [publicOrigin]: `http://127.0.0.1:${server.port}` }
    const browser = createBrowser(t, { origin: publicOrigin, connectTo })
    await signIn(browser)
    t.is((await browser.fetch(guarded)).statusCode, 200)
    const scope = mode === 'dual' ? 'data:write bucket:read' : loginScope
    t.like(idp.requestsTo('authorize')[0]?.query, { client_id: idp.clientId, scope })
    t.is(idp.tokenRequests[1]?.form.scope, mode === 'dual' ? 'bucket:read' : undefined)
  })

  contract('2.1: the session has exactly the fields of its mode, with the last refresh token received', async t => {
    const server = await startSignedIn(t, { mode })
    const session = openedFields(server.browser, server)
    t.deepEqual(Object.keys(session).sort(), fields as readonly string[] as string[])
    t.is(session[serverToken], lastIssued(server.idp, loginScope))
    t.is(session.public_token, mode === 'dual' ? lastIssued(server.idp, 'viewables:read') : undefined)
    const newest = server.idp.issued.refreshTokens.at(-1)
    t.is(session.refresh_token, newest?.value)
    t.is(newest?.scope, mode === 'dual' ? 'viewables:read' : loginScope)
  })

  contract('2.1, 5.1 step 3, 8: expires_at comes from the expires_in of the token for the server', async t => {
    const server = await startTestServer(t, { mode })
    const { browser, clock, idp } = server
    const expiryAfter = async (use: Promise<unknown>) => {
      await use
      return Number(openedFields(browser, server).expires_at) - clock.now()
    }
    idp.fail('token', faults.change({ expires_in: 1234 }), faults.change({ expires_in: 77 }))
    t.is(await expiryAfter(signIn(browser)), 1_234_000)
    // In single mode the second fault is still to come.
    idp.heal()
    clock.advance(1_234_001)
    idp.fail('token', faults.change({ expires_in: 1800 }), faults.change({ expires_in: 60 }))
    t.is(await expiryAfter(browser.fetch(guarded)), 1_800_000)
  })

  contract('2.1: the session lives for 24 hours and is stored only in the browser', async t => {
    const first = await startTestServer(t, { mode })
    const callback = await signIn(first.browser)
    for (const { attributes } of sessionCookiesSet(callback)) t.is(attributes['max-age'], '86400')
    t.is(openedSession(first.browser, first)._expire, first.clock.now() + dayMs)
    // Another server with the same secret accepts the session, although it has never seen it.
    const second = await startTestServer(t, { mode, idp: first.idp, clock: first.clock })
    second.connect(first.browser)
    t.is((await first.browser.fetch(guarded)).statusCode, 200)
  })

  contract('2.2: a token response needs only access_token, refresh_token and expires_in', async t => {
    const { browser, idp } = await startTestServer(t, { mode })
    idp.failWhen('token', () =>
      faults.change(({ access_token, refresh_token, expires_in }) => ({ access_token, refresh_token, expires_in }))
    )
    await signIn(browser)
    t.is((await browser.fetch(guarded)).statusCode, 200)
  })

  contract('2.3: handlers get token objects whose expires_in is the remaining time in rounded seconds', async t => {
    const { browser, clock, idp } = await startWithRoute(t, mode, ctx => {
      ctx.body = ctx.state.tokens
    })
    await signIn(browser)
    const internal = lastIssued(idp, loginScope)
    const narrow = mode === 'dual' ? lastIssued(idp, 'viewables:read') : internal
    const issuedAt = clock.now()
    for (const [elapsedMs, expiresIn] of [
      [0, 3599],
      [499, 3599],
      [501, 3598],
      [1500, 3598],
      [1501, 3597],
      [3_598_400, 1],
      [3_598_600, 0],
      [3_599_000, 0]
    ] as const) {
      clock.advance(issuedAt + elapsedMs - clock.now())
      t.deepEqual((await browser.fetch(customRoute)).json(), {
        internal: { access_token: internal, expires_in: expiresIn },
        public: { access_token: narrow, expires_in: expiresIn }
      })
    }
  })

  contract('2.4, 2.5, 4 rule 3, 7: the profile is the display name, or the general error', async t => {
    const { browser, idp } = await startSignedIn(t, { mode })
    const before = sessionHeader(browser)
    idp.settings.profile = { name: 'A. Lovelace', firstName: 'Ada', lastName: 'King', email: 'ada@example.com' }
    idp.fail('userinfo', faults.answer({ status: 403, body: { error: 'insufficient_scope' } }))
    const failed = await browser.fetch('/api/auth/profile')
    t.is(failed.statusCode, 502)
    t.deepEqual(Object.keys(failed.json()).sort(), ['error', 'error_description', 'request_id'])
    t.is(sessionHeader(browser), before, 'the session stays')
    const profile = await browser.fetch('/api/auth/profile')
    t.is(profile.statusCode, 200)
    t.like(profile.headers, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
    t.deepEqual(profile.json(), { name: mode === 'single' ? 'A. Lovelace' : 'Ada King' })
  })

  contract('3: a callback with a code makes any session active and redirects to the start page', async t => {
    const server = await startTestServer(t, { mode })
    const { browser, clock } = server
    const arrive = async (state: string) => {
      const callback = await signIn(browser)
      t.is(callback.statusCode, 302, state)
      t.is(callback.headers.location, '/', state)
      t.is(openedFields(browser, server).expires_at, clock.now() + lifetimeMs, state)
    }
    await arrive('anonymous')
    clock.advanceSeconds(100)
    await arrive('active')
    clock.advanceSeconds(4000)
    await arrive('expired')
  })

  for (const path of needsTokens) {
    contract(`3: ${path} refreshes an expired session and leaves an active session unchanged`, async t => {
      const server = await startSignedIn(t, { mode })
      const { browser, clock, idp } = server
      const before = openedFields(browser, server)
      const callsBefore = idp.tokenRequests.length
      // A session has expired when expires_at is earlier than now, so it is still active in this millisecond.
      clock.advance(lifetimeMs)
      const active = await browser.fetch(path)
      t.is(active.statusCode, 200)
      t.deepEqual(active.setCookies, [])
      t.is(idp.tokenRequests.length, callsBefore)
      clock.advance(1)
      t.is((await browser.fetch(path)).statusCode, 200)
      t.is(idp.tokenRequests.length - callsBefore, refreshScopes.length)
      const after = openedFields(browser, server)
      t.is(after.expires_at, clock.now() + lifetimeMs)
      t.is(after.refresh_token, idp.issued.refreshTokens.at(-1)?.value)
      t.is(after[serverToken], lastIssued(idp, loginScope))
      t.is(after.public_token, mode === 'dual' ? lastIssued(idp, 'viewables:read') : undefined)
      t.deepEqual(Object.keys(after).sort(), fields as readonly string[] as string[])
      for (const field of fields) t.not(after[field], before[field], `${field} has a new value`)
    })

    contract(`2.1, 3, 5.1, 7: ${path} responds with an empty 401 if the session lacks a token`, async t => {
      const server = await startTestServer(t, { mode })
      const now = server.clock.now()
      const own = { kind: 'complete', id: 'x', rev: 1, loggedInAt: now, issuedAt: now }
      const tokens = { token: 'a-token', public_token: 'a-token', internal_token: 'a-token' }
      const active = { ...tokens, expires_at: now + lifetimeMs }
      const useless = [{}, active, { ...active, expires_at: now - 1 }].map(fields => {
        const cookie = sealedHeader(server, [now, 0, dayMs, { ...own, fields }])
        return server.browser.get(path, { headers: { cookie } })
      })
      const responses = await Promise.all([server.browser.fetch(path), server.browser.get(path), ...useless])
      for (const { statusCode, body, headers, setCookies } of responses) {
        t.deepEqual([statusCode, body.length, headers['content-length']], [401, 0, '0'])
        t.deepEqual([headers.location, setCookies], [undefined, []])
      }
      t.deepEqual(server.idp.requests, [])
    })
  }

  contract('3: logout ends an active or expired session without a refresh and redirects to the start page', async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    idp.settings.accessTokenLength = 5000
    for (const advance of [0, lifetimeMs + 1]) {
      await signIn(browser)
      t.truthy(browser.cookies.get('platform_session.1'), 'the session has more than one cookie')
      const callsBefore = idp.tokenRequests.length
      clock.advance(advance)
      const logout = await browser.navigate('/api/auth/logout')
      t.is(logout.statusCode, 302)
      t.like(logout.headers, { location: '/', 'cache-control': 'no-store' })
      t.deepEqual(browser.cookies.all(), [])
      t.is((await browser.fetch(guarded)).statusCode, 401)
      t.is(idp.tokenRequests.length, callsBefore)
    }
  })

  contract('4: every endpoint accepts GET and rejects other methods', async t => {
    const { browser, idp } = await startSignedIn(t, { mode })
    const before = idp.requests.length
    const login = ['/api/auth/login', '/api/auth/callback', '/api/auth/callback?code=x&state=y']
    for (const path of [...login, ...needsTokens, '/api/auth/logout']) {
      for (const method of words`HEAD POST PUT PATCH DELETE OPTIONS TRACE PROPFIND`) {
        const { statusCode, headers, setCookies } = await browser.request(method, path)
        t.deepEqual([statusCode, headers.allow, headers.location], [405, 'GET', undefined], `${method} ${path}`)
        t.deepEqual(setCookies, [])
      }
    }
    t.is(idp.requests.length, before)
    for (const path of [...login, ...needsTokens, '/api/auth/logout']) {
      t.not((await browser.get(path)).statusCode, 405, path)
    }
  })

  contract('3, 4: login, callback and logout need no session, and login changes none', async t => {
    const { browser, idp } = await startTestServer(t, { mode })
    const withoutSession = [await browser.navigate('/api/auth/logout'), await browser.navigate('/api/auth/login')]
    const callback = await signIn(browser)
    const before = sessionHeader(browser)
    const login = await browser.navigate('/api/auth/login')
    t.is(sessionHeader(browser), before)
    const logout = await browser.navigate('/api/auth/logout')
    for (const { statusCode, body, headers } of [...withoutSession, callback, login, logout]) {
      t.deepEqual([statusCode, body.length, headers['content-type']], [302, 0, undefined])
    }
    for (const response of [...withoutSession.slice(1), login]) t.deepEqual(sessionCookiesSet(response), [])
    t.is(idp.tokenRequests.length, mode === 'single' ? 1 : 2)
  })

  contract('4, rules 1 and 2: user info is requested with the newest token for the server', async t => {
    const server = await startSignedIn(t, { mode })
    const { browser, clock, idp } = server
    await browser.fetch('/api/auth/profile')
    const first = `Bearer ${openedFields(browser, server)[serverToken]}`
    t.deepEqual(bearersAt(idp), [first])
    clock.advance(lifetimeMs + 1)
    for (const path of needsTokens) t.is((await browser.fetch(path)).statusCode, 200)
    t.deepEqual(bearersAt(idp), [first, `Bearer ${lastIssued(idp, loginScope)}`])
  })

  contract('4, rule 4: no response contains a token that must stay on the server', async t => {
    const { browser, clock, idp, recorder } = await startSignedIn(t, { mode })
    for (const advance of [0, lifetimeMs + 1, lifetimeMs + 1]) {
      clock.advance(advance)
      for (const path of ['/', '/api/auth/profile', '/api/auth/token', '/api/auth/login']) await browser.get(path)
    }
    await browser.navigate('/api/auth/logout')
    t.true(idp.issued.accessTokens.length >= 3)
    recorder.assertNone(t, idp.secrets(mode === 'dual' ? { except: 'viewables:read' } : {}))
  })

  contract('4, rule 5: static files take precedence over the routes', async t => {
    const wwwroot = await tempFolder(t, { 'api/auth/profile': 'a file', 'api/auth/extra.txt': 'another' })
    const { browser, idp } = await startTestServer(t, { mode, settings: { wwwroot } })
    t.is((await browser.get('/api/auth/profile')).text(), 'a file')
    t.is((await browser.get('/api/auth/extra.txt')).text(), 'another')
    t.is((await browser.navigate('/api/auth/login')).statusCode, 302, 'a route works if there is no file with its path')
    t.deepEqual(idp.requestsTo('userinfo'), [])
  })

  contract('5.1, step 1: login redirects with all parameters in the order of APS', async t => {
    const { browser, config, idp } = await startTestServer(t, { mode })
    const { headers } = await browser.navigate('/api/auth/login')
    t.like(headers, protective)
    const granted = Object.keys(headers).filter(name => name.startsWith('access-control-'))
    t.deepEqual(granted, [])
    const url = new URL(headers.location ?? '')
    t.is(`${url.origin}${url.pathname}`, idp.authorizationEndpoint)
    const { state, code_challenge, ...rest } = Object.fromEntries(url.searchParams)
    t.deepEqual(rest, {
      client_id: idp.clientId,
      response_type: 'code',
      redirect_uri: config.platform.callbackUrl,
      scope: loginScope,
      code_challenge_method: 'S256'
    })
    const order = words`client_id response_type redirect_uri state scope code_challenge code_challenge_method`
    t.deepEqual([...url.searchParams.keys()], order)
    t.true(url.search.includes(`scope=${loginScope.replaceAll(':', '%3A').replaceAll(' ', '+')}&`))
    t.regex(code_challenge ?? '', /^[A-Za-z0-9_-]{43}$/)
    t.truthy(state)
  })

  contract('5.1, step 2: the code is exchanged, and in dual mode a public token is requested', async t => {
    const { config, idp } = await startSignedIn(t, { mode })
    const [exchange, publicTokenRequest, ...more] = idp.tokenRequests
    t.deepEqual(more, [])
    const { code_verifier, ...form } = exchange?.form ?? {}
    t.deepEqual(form, {
      grant_type: 'authorization_code',
      code: idp.issued.codes[0] ?? '',
      redirect_uri: config.platform.callbackUrl
    })
    t.is(exchange?.headers.authorization, `Basic ${btoa(`${idp.clientId}:${idp.clientSecret}`)}`)
    const refresh_token = idp.issued.refreshTokens[0]?.value
    const publicRefresh = { grant_type: 'refresh_token', refresh_token, scope: 'viewables:read' }
    t.deepEqual(publicTokenRequest?.form, mode === 'dual' ? publicRefresh : undefined)
  })

  contract('5.1, step 3: each request of a refresh sends the newest refresh token and its scopes', async t => {
    const server = await startSignedIn(t, { mode })
    const { browser, clock, idp } = server
    for (const _round of [1, 2]) {
      const callsBefore = idp.tokenRequests.length
      const tokensBefore = idp.issued.refreshTokens.length
      const stored = openedFields(browser, server).refresh_token
      clock.advance(lifetimeMs + 1)
      await browser.fetch(guarded)
      const presented = [stored, ...idp.issued.refreshTokens.slice(tokensBefore).map(({ value }) => value)]
      t.deepEqual(
        idp.tokenRequests.slice(callsBefore).map(({ form }) => form),
        refreshScopes.map((scope, index) => ({
          grant_type: 'refresh_token',
          refresh_token: presented[index] ?? '',
          scope
        }))
      )
      for (const { headers } of idp.tokenRequests.slice(callsBefore)) {
        t.is(headers.authorization, `Basic ${btoa(`${idp.clientId}:${idp.clientSecret}`)}`)
      }
    }
    t.deepEqual(idp.reuses, [])
  })

  contract('5.2 and 8: the session cookie cannot be read without the secret and is valid for 24 hours', async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode })
    const cookie = sessionHeader(browser)
    const readable = dottedText.bytesOf(cookie.split('=')[1] ?? '').toString('latin1') + cookie
    for (const secret of idp.secrets()) t.false(readable.includes(secret))
    t.notRegex(readable, /token|expires/)
    // The cookie is sent without a cookie jar, so that only the server can end the session.
    const ask = async () => (await browser.get(guarded, { headers: { cookie } })).statusCode
    clock.advance(dayMs)
    t.is(await ask(), 200)
    const calls = idp.tokenRequests.length
    clock.advance(1)
    t.is(await ask(), 401)
    t.is(idp.tokenRequests.length, calls, 'a session past its maximum age is not refreshed')
  })
}

test('service contract, dual mode, section 4: /api/auth/token returns the public token and its remaining seconds, and keeps them out of caches and away from other origins', async t => {
  const { browser, clock, idp } = await startSignedIn(t, { mode: 'dual' })
  clock.advance(1_500)
  const { statusCode, headers, json } = await browser.fetch('/api/auth/token')
  t.is(statusCode, 200)
  t.deepEqual(json(), { access_token: lastIssued(idp, 'viewables:read'), expires_in: 3598 })
  const type = 'application/json; charset=utf-8'
  const caching = { 'cache-control': 'no-store', pragma: 'no-cache', vary: 'Cookie, Sec-Fetch-Site' }
  t.like(headers, { ...caching, ...protective, 'content-type': type })
  t.is(headers.etag, undefined)
  t.is(headers['set-cookie'], undefined, 'the session has not changed, so no cookie is set')
})

test('service contract, single mode, section 4: /api/auth/token does not exist', async t => {
  const { browser } = await startTestServer(t, { mode: 'single' })
  t.is((await browser.fetch('/api/auth/token')).statusCode, 404)
  await signIn(browser)
  const response = await browser.fetch('/api/auth/token', { headers: { accept: 'application/json' } })
  t.deepEqual([response.statusCode, response.json().error], [404, 'not_found'])
  t.regex(String(response.json().error_description), /in dual mode only \(mode: dual\)/)
})
