// The contract, clause by clause, for both modes. A title names the clause it is about.
import test, { type ExecutionContext } from 'ava'
import { pino } from 'pino'
import { loadConfig } from '#src/config/load.js'
import { serve } from '#src/server.js'
import { createBrowser } from '../helpers/browser.js'
import { publicOrigin } from '../helpers/config.js'
import { createHostileIdp, faults, type HostileIdp } from '../helpers/hostile-idp/index.js'
import { modes } from '../helpers/modes.js'
import { openCallback, signIn, startLogin, startTestServer } from '../helpers/server.js'
import { tempFolder } from '../helpers/temp-folder.js'
import {
  guarded,
  openedFields,
  openedSession,
  ownRoute,
  parameter,
  sealedHeader,
  sessionCookies,
  sessionCookiesSet,
  sessionHeader,
  startWithRoute
} from './support.js'

const callbackUrl = `${publicOrigin}/api/auth/callback`
const lifetimeMs = 3599 * 1000
const dayMs = 86_400_000

/** What the contract says differently of the two configurations. */
const expected = {
  single: {
    loginScope: 'data:read account:read account:write',
    /** The scope of each token request of one refresh. */
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
    test(`contract, ${mode} mode, section ${clause}`, run)

  contract('1: a person is logged in at the identity provider and stays logged in', async t => {
    const { browser, idp } = await startTestServer(t, { mode })
    t.is((await browser.fetch(guarded)).statusCode, 401)
    const callback = await signIn(browser)
    t.is(callback.headers.location, '/')
    t.is(idp.requestsTo('authorize').length, 1)
    t.is((await browser.fetch(guarded)).statusCode, 200)
  })

  contract('1: the session belongs to one browser', async t => {
    const { browser, newBrowser } = await startTestServer(t, { mode })
    await signIn(browser)
    t.is((await newBrowser().fetch(guarded)).statusCode, 401)
  })

  contract('1: static files come from wwwroot, and without one the root path finds no route', async t => {
    const wwwroot = await tempFolder(t, { 'page.html': '<p>a page' })
    const { browser } = await startTestServer(t, { mode, overrides: { wwwroot } })
    t.is((await browser.get('/page.html')).text(), '<p>a page')
    const landing = await browser.get((await signIn(browser)).headers.location ?? '')
    t.is(landing.statusCode, 404)
    t.is((await browser.get((await browser.get('/api/auth/logout')).headers.location ?? '')).statusCode, 404)
  })

  contract('1: the named variables configure the server', async t => {
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
    const browser = createBrowser(t, {
      origin: publicOrigin,
      connectTo: { [publicOrigin]: `http://127.0.0.1:${server.port}` }
    })
    await signIn(browser)
    t.is((await browser.fetch(guarded)).statusCode, 200)
    t.is(idp.requestsTo('authorize')[0]?.query.client_id, idp.clientId)
    t.is(
      idp.requestsTo('authorize')[0]?.query.scope,
      mode === 'dual' ? 'data:write bucket:read' : 'data:read account:read account:write'
    )
    t.is(idp.tokenRequests[1]?.form.scope, mode === 'dual' ? 'bucket:read' : undefined)
  })

  contract('2.1: the session has exactly the fields of its configuration', async t => {
    const server = await startTestServer(t, { mode })
    await signIn(server.browser)
    const session = openedFields(server.browser, server)
    t.deepEqual(Object.keys(session).sort(), fields as readonly string[] as string[])
    t.is(session[serverToken], lastIssued(server.idp, loginScope))
    t.is(session.public_token, mode === 'dual' ? lastIssued(server.idp, 'viewables:read') : undefined)
  })

  contract('2.1: the refresh token is the last one received, in dual mode that of the public credentials', async t => {
    const server = await startTestServer(t, { mode })
    await signIn(server.browser)
    const { refreshTokens } = server.idp.issued
    t.is(openedFields(server.browser, server).refresh_token, refreshTokens.at(-1)?.value)
    t.is(refreshTokens.at(-1)?.scope, mode === 'dual' ? 'viewables:read' : loginScope)
  })

  contract(
    '2.1: expires_at is the time of issue and expires_in seconds, in dual mode those of the internal token',
    async t => {
      const server = await startTestServer(t, { mode })
      server.idp.fail('token', faults.change({ expires_in: 1234 }), faults.change({ expires_in: 77 }))
      await signIn(server.browser)
      t.is(openedFields(server.browser, server).expires_at, server.clock.now() + 1_234_000)
    }
  )

  contract('2.1: the session lives 24 hours, and in the browser alone', async t => {
    const first = await startTestServer(t, { mode })
    const callback = await signIn(first.browser)
    for (const { attributes } of sessionCookiesSet(callback)) t.is(attributes['max-age'], '86400')
    t.is(openedSession(first.browser, first)._expire, first.clock.now() + dayMs)
    // A server that has never seen this session, but has the same secret, knows all about it.
    const second = await startTestServer(t, { mode, idp: first.idp, clock: first.clock })
    second.connect(first.browser)
    t.is((await first.browser.fetch(guarded)).statusCode, 200)
  })

  contract('2.1: a session without fields is nobody logged in', async t => {
    const server = await startTestServer(t, { mode })
    const empty = { _id: 'x', _issued: server.clock.now(), _expire: server.clock.now() + dayMs }
    const cookie = sealedHeader(server, empty)
    t.is((await server.browser.get(guarded, { headers: { cookie } })).statusCode, 401)
  })

  contract(
    '2.2: the credentials are access_token, refresh_token and expires_in, and nothing else is needed',
    async t => {
      const { browser, idp } = await startTestServer(t, { mode })
      idp.failWhen('token', () =>
        faults.change(({ access_token, refresh_token, expires_in }) => ({ access_token, refresh_token, expires_in }))
      )
      await signIn(browser)
      t.is((await browser.fetch(guarded)).statusCode, 200)
    }
  )

  contract('2.3: handlers get token objects with the whole seconds left, rounded', async t => {
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
      t.deepEqual((await browser.fetch(ownRoute)).json(), {
        internal: { access_token: internal, expires_in: expiresIn },
        public: { access_token: narrow, expires_in: expiresIn }
      })
    }
  })

  contract('2.4 and 2.5: the profile is the display name of the configuration and nothing else', async t => {
    const { browser, idp } = await startTestServer(t, { mode })
    await signIn(browser)
    idp.settings.profile = { name: 'A. Lovelace', firstName: 'Ada', lastName: 'King', email: 'ada@example.com' }
    const profile = await browser.fetch('/api/auth/profile')
    t.is(profile.statusCode, 200)
    t.deepEqual(profile.json(), { name: mode === 'single' ? 'A. Lovelace' : 'Ada King' })
  })

  contract(
    '3: from any state, a callback with a code makes the session active and leads to the start page',
    async t => {
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
    }
  )

  for (const path of needsTokens) {
    contract(`3: an expired session is refreshed by ${path} before it answers`, async t => {
      const server = await startTestServer(t, { mode })
      const { browser, clock, idp } = server
      await signIn(browser)
      const before = openedFields(browser, server)
      const callsBefore = idp.tokenRequests.length
      clock.advance(lifetimeMs + 1)
      const response = await browser.fetch(path)
      t.is(response.statusCode, 200)
      t.is(idp.tokenRequests.length - callsBefore, refreshScopes.length)
      const after = openedFields(browser, server)
      t.is(after.expires_at, clock.now() + lifetimeMs)
      t.deepEqual(Object.keys(after).sort(), fields as readonly string[] as string[])
      for (const field of fields) t.not(after[field], before[field], `${field} is overwritten`)
    })

    contract(`3: an active session answers ${path} without a refresh and is not written again`, async t => {
      const server = await startTestServer(t, { mode })
      const { browser, clock, idp } = server
      await signIn(browser)
      const callsBefore = idp.tokenRequests.length
      // The last millisecond: a session expires when expires_at is earlier than now.
      clock.advance(lifetimeMs)
      const response = await browser.fetch(path)
      t.is(response.statusCode, 200)
      t.is(idp.tokenRequests.length, callsBefore)
      t.deepEqual(response.setCookies, [])
    })

    contract(`3 and 7: without a session ${path} answers 401 with an empty body and stays anonymous`, async t => {
      const { browser, idp } = await startTestServer(t, { mode })
      for (const response of [await browser.fetch(path), await browser.get(path)]) {
        t.is(response.statusCode, 401)
        t.is(response.body.length, 0)
        t.deepEqual(response.setCookies, [])
      }
      t.deepEqual(idp.requests, [])
    })

    contract(`3 and 5.1: a session without a refresh token is anonymous to ${path}, expired or not`, async t => {
      const server = await startTestServer(t, { mode })
      for (const expires_at of [server.clock.now() + lifetimeMs, server.clock.now() - 1]) {
        const own = { _id: 'x', _issued: server.clock.now(), _expire: server.clock.now() + dayMs }
        const tokens = { token: 'a-token', public_token: 'a-token', internal_token: 'a-token' }
        const cookie = sealedHeader(server, { ...tokens, expires_at, ...own })
        const response = await server.browser.get(path, { headers: { cookie } })
        t.is(response.statusCode, 401)
        t.is(response.body.length, 0)
      }
      t.deepEqual(server.idp.requests, [])
    })
  }

  for (const [state, advance] of [
    ['active', 0],
    ['expired', lifetimeMs + 1]
  ] as const) {
    contract(`3: logout ends an ${state} session, refreshes nothing and leads to the start page`, async t => {
      const { browser, clock, idp } = await startTestServer(t, { mode })
      await signIn(browser)
      const callsBefore = idp.tokenRequests.length
      clock.advance(advance)
      const logout = await browser.navigate('/api/auth/logout')
      t.is(logout.statusCode, 302)
      t.is(logout.headers.location, '/')
      t.deepEqual(sessionCookies(browser), [])
      t.is((await browser.fetch(guarded)).statusCode, 401)
      t.is(idp.tokenRequests.length, callsBefore)
    })
  }

  contract('3: login redirects and changes no session, whether there is one or not', async t => {
    const { browser, idp } = await startTestServer(t, { mode })
    const anonymous = await browser.navigate('/api/auth/login')
    t.is(anonymous.statusCode, 302)
    t.deepEqual(sessionCookiesSet(anonymous), [])
    await signIn(browser)
    const before = sessionHeader(browser)
    const active = await browser.navigate('/api/auth/login')
    t.is(active.statusCode, 302)
    t.deepEqual(sessionCookiesSet(active), [])
    t.is(sessionHeader(browser), before)
    t.is(idp.tokenRequests.length, mode === 'single' ? 1 : 2)
  })

  contract('4: every endpoint answers GET, and no other method', async t => {
    const { browser } = await startTestServer(t, { mode })
    const paths = ['/api/auth/login', '/api/auth/callback', '/api/auth/logout', ...needsTokens]
    for (const path of paths) {
      t.not((await browser.get(path)).statusCode, 405, path)
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        t.is((await browser.request(method, path)).statusCode, 405, `${method} ${path}`)
      }
    }
  })

  contract('4: redirects carry no body', async t => {
    const { browser } = await startTestServer(t, { mode })
    const login = await browser.navigate('/api/auth/login')
    const callback = await signIn(browser)
    const logout = await browser.navigate('/api/auth/logout')
    for (const response of [login, callback, logout]) {
      t.is(response.statusCode, 302)
      t.is(response.body.length, 0)
      t.is(response.headers['content-type'], undefined)
    }
  })

  contract('4: login, callback and logout need no session', async t => {
    const { browser } = await startTestServer(t, { mode })
    t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
    t.is((await openCallback(browser, await startLogin(browser))).statusCode, 302)
  })

  contract('4, rule 1: a handler acts on the tokens that the refresh brought', async t => {
    const server = await startTestServer(t, { mode })
    const { browser, clock, idp } = server
    await signIn(browser)
    clock.advance(lifetimeMs + 1)
    for (const path of needsTokens) t.is((await browser.fetch(path)).statusCode, 200)
    t.deepEqual(bearersAt(idp), [`Bearer ${lastIssued(idp, loginScope)}`])
  })

  contract('4, rule 2: the profile is asked for with the token that stays on the server', async t => {
    const server = await startTestServer(t, { mode })
    await signIn(server.browser)
    await server.browser.fetch('/api/auth/profile')
    t.deepEqual(bearersAt(server.idp), [`Bearer ${openedFields(server.browser, server)[serverToken]}`])
  })

  contract(
    '4, rule 3, and 7: a profile that cannot be had is an error of the general kind, and the session stays',
    async t => {
      const { browser, idp } = await startTestServer(t, { mode })
      await signIn(browser)
      const before = sessionHeader(browser)
      idp.fail('userinfo', faults.answer({ status: 403, body: { error: 'insufficient_scope' } }))
      const failed = await browser.fetch('/api/auth/profile')
      t.is(failed.statusCode, 502)
      t.deepEqual(Object.keys(failed.json()).sort(), ['error', 'error_description', 'request_id'])
      t.is(sessionHeader(browser), before)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
    }
  )

  contract('4, rule 4: no answer ever holds a token that must stay on the server', async t => {
    const { browser, clock, idp, recorder } = await startTestServer(t, { mode })
    await signIn(browser)
    for (const advance of [0, lifetimeMs + 1, lifetimeMs + 1]) {
      clock.advance(advance)
      for (const path of ['/', '/api/auth/profile', '/api/auth/token', '/api/auth/login']) await browser.get(path)
    }
    await browser.navigate('/api/auth/logout')
    t.true(idp.issued.accessTokens.length >= 3)
    recorder.assertNone(t, idp.secrets(mode === 'dual' ? { except: 'viewables:read' } : {}))
  })

  contract('4, rule 5: a static file goes before the session and the routes', async t => {
    const wwwroot = await tempFolder(t, { 'api/auth/profile': 'a file', 'api/auth/extra.txt': 'another' })
    const { browser, idp } = await startTestServer(t, { mode, overrides: { wwwroot } })
    t.is((await browser.get('/api/auth/profile')).text(), 'a file')
    t.is((await browser.get('/api/auth/extra.txt')).text(), 'another')
    t.is((await browser.navigate('/api/auth/login')).statusCode, 302, 'what is not there as a file is still a route')
    t.deepEqual(idp.requestsTo('userinfo'), [])
  })

  contract('5.1, step 1: the authorization URL has client id, response type, callback URL and scopes', async t => {
    const { browser, config, idp } = await startTestServer(t, { mode })
    const { location = '' } = (await browser.navigate('/api/auth/login')).headers
    t.true(location.startsWith(`${idp.authorizationEndpoint}?`))
    t.is(parameter(location, 'client_id'), idp.clientId)
    t.is(parameter(location, 'response_type'), 'code')
    t.is(parameter(location, 'redirect_uri'), config.platform.callbackUrl)
    t.is(parameter(location, 'scope'), loginScope)
  })

  contract('5.1, step 2: the code is exchanged, and in dual mode the result narrowed to the public scopes', async t => {
    const { browser, config, idp } = await startTestServer(t, { mode })
    await signIn(browser)
    const [exchange, narrowing, ...more] = idp.tokenRequests
    t.deepEqual(more, [])
    const { code_verifier, ...form } = exchange?.form ?? {}
    t.deepEqual(form, {
      grant_type: 'authorization_code',
      code: idp.issued.codes[0] ?? '',
      redirect_uri: config.platform.callbackUrl
    })
    t.is(exchange?.headers.authorization, `Basic ${btoa(`${idp.clientId}:${idp.clientSecret}`)}`)
    const publicRefresh = {
      grant_type: 'refresh_token',
      refresh_token: idp.issued.refreshTokens[0]?.value,
      scope: 'viewables:read'
    }
    t.deepEqual(narrowing?.form, mode === 'dual' ? publicRefresh : undefined)
  })

  contract(
    '5.1, step 3: a refresh sends the stored refresh token and the scopes, each answer feeding the next',
    async t => {
      const server = await startTestServer(t, { mode })
      const { browser, clock, idp } = server
      await signIn(browser)
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
    }
  )

  contract('5.1, step 3: expires_at counts from the refresh, in dual mode by the internal token again', async t => {
    const server = await startTestServer(t, { mode })
    const { browser, clock, idp } = server
    await signIn(browser)
    clock.advance(lifetimeMs + 1)
    idp.fail('token', faults.change({ expires_in: 1800 }), faults.change({ expires_in: 60 }))
    await browser.fetch(guarded)
    t.is(openedFields(browser, server).expires_at, clock.now() + 1_800_000)
  })

  contract('5.2 and 8: the session cookie shows nothing without the secret and ends after 24 hours', async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    await signIn(browser)
    const cookie = sessionHeader(browser)
    const readable = Buffer.from(cookie.split('=')[1] ?? '', 'base64url').toString('latin1') + cookie
    for (const secret of idp.secrets()) t.false(readable.includes(secret))
    t.notRegex(readable, /token|expires/)
    // Sent by hand, as nothing but the server itself may be what ends it.
    const ask = async () => (await browser.get(guarded, { headers: { cookie } })).statusCode
    clock.advance(dayMs)
    t.is(await ask(), 200)
    clock.advance(1)
    t.is(await ask(), 401)
  })

  contract('8: how long an access token lasts is what each answer of the provider says', async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    idp.settings.accessTokenLifetimeSeconds = 60
    await signIn(browser)
    const refreshes = () => idp.tokenRequests.filter(({ form }) => form.scope === refreshScopes[0]).length
    const before = refreshes()
    clock.advance(60_001)
    idp.settings.accessTokenLifetimeSeconds = 7200
    await browser.fetch(guarded)
    t.is(refreshes(), before + 1)
    clock.advance(7_200_000)
    await browser.fetch(guarded)
    t.is(refreshes(), before + 1)
    clock.advance(1)
    await browser.fetch(guarded)
    t.is(refreshes(), before + 2)
  })
}

test('contract, dual mode, section 4: /api/auth/token gives the public token and the seconds left', async t => {
  const { browser, clock, idp } = await startTestServer(t, { mode: 'dual' })
  await signIn(browser)
  clock.advance(1_500)
  const response = await browser.fetch('/api/auth/token')
  t.is(response.statusCode, 200)
  t.deepEqual(response.json(), { access_token: lastIssued(idp, 'viewables:read'), expires_in: 3598 })
})

test('contract, single mode, section 4: there is no /api/auth/token', async t => {
  const { browser } = await startTestServer(t, { mode: 'single' })
  t.is((await browser.fetch('/api/auth/token')).statusCode, 404)
  await signIn(browser)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 404)
})
