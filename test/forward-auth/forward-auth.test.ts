// Forward-auth: before a gateway forwards a browser's request to an application, it asks this server, which responds with an
// access token. The gateway does not pass Set-Cookie on, so the browser does not get the new cookie of a refresh. The server
// keeps the refreshed session.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import test, { type ExecutionContext } from 'ava'
import { askAbout, askForwardAuth } from '../helpers/gateway.js'
import { faults } from '../helpers/hostile-idp/index.js'
import { modes } from '../helpers/modes.js'
import { freePort, listen } from '../helpers/ports.js'
import { sendRaw } from '../helpers/raw.js'
import { signIn, startTestServer, type TestServerOptions } from '../helpers/server.js'
import { openedFields, sessionCookies, sessionHeader } from '../web/support.js'

/** The time that a gateway has for the rest of a body. */
const LINGER_MS = 5000

/** Starts a server with the listener of forward-auth. */
async function start(t: ExecutionContext, { settings = {}, ...options }: TestServerOptions = {}) {
  const withListener = { ...settings, forwardAuth: { address: '127.0.0.1:0' } }
  const started = await startTestServer(t, { ...options, settings: withListener })
  return { ...started, port: started.server.forwardAuthPort as number }
}

/** Starts such a server and signs its browser in. */
async function startSignedIn(t: ExecutionContext, options?: TestServerOptions) {
  const started = await start(t, options)
  await signIn(started.browser)
  return started
}

for (const mode of modes) {
  const field = mode === 'dual' ? 'internal_token' : 'token'
  const calls = mode === 'dual' ? 2 : 1

  test(`${mode}: forward-auth responds with the access token for the server and with no body or cookie`, async t => {
    const server = await startSignedIn(t, { mode })
    const { browser, port } = server
    for (const [method, path] of [
      ['GET', '/'],
      ['POST', '/any/path?with=query'],
      ['PROPFIND', '/api/auth/logout']
    ] as const) {
      const headers = { cookie: sessionHeader(browser), 'sec-fetch-site': 'same-origin' }
      const answer = await askForwardAuth(port, { method, path, headers })
      t.is(answer.status, 200)
      t.is(answer.body, '')
      t.is(answer.authorization, `Bearer ${openedFields(browser, server)[field]}`)
      t.is(answer.headers['cache-control'], 'no-store')
      t.is(answer.headers['set-cookie'], undefined)
    }
  })

  for (const [cookies, accessTokenLength] of [
    [1, 300],
    [2, 4500]
  ] as const) {
    test(`${mode}, ${cookies} cookies: the session survives 24 refreshes whose new cookies do not reach the browser`, async t => {
      const { browser, port, idp, clock } = await start(t, { mode })
      idp.settings.accessTokenLength = mode === 'dual' ? accessTokenLength / 2 : accessTokenLength
      await signIn(browser)
      t.is(sessionCookies(browser).length, cookies)
      const old = sessionHeader(browser)
      const before = idp.tokenRequests.length
      const tokens = new Set<string | undefined>()
      for (let hour = 1; hour <= 24; hour++) {
        // The tokens expire after 3,599 seconds, and the cookie is valid for a day.
        clock.advance(3_599_500)
        for (const _ of [1, 2]) {
          const answer = await askAbout(port, browser)
          t.is(answer.status, 200)
          t.is(answer.headers['set-cookie'], undefined)
          tokens.add(answer.authorization)
        }
      }
      t.is(tokens.size, 24)
      t.is(idp.tokenRequests.length - before, 24 * calls)
      t.is(sessionHeader(browser), old)
      const caughtUp = await browser.fetch('/api/auth/profile')
      t.is(caughtUp.statusCode, 200)
      t.not(sessionHeader(browser), old)
      t.is(idp.tokenRequests.length - before, 24 * calls, 'the browser gets the kept session without another call')
      clock.advanceSeconds(3600)
      t.is((await askAbout(port, browser)).status, 200)
      t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      t.deepEqual(idp.reuses, [])
    })
  }

  test(`${mode}: the session is not lost if pages and gateways refresh it in turn`, async t => {
    const { browser, port, idp, clock } = await startSignedIn(t, { mode })
    for (let hour = 1; hour <= 12; hour++) {
      clock.advanceSeconds(3600)
      const asked = [askAbout(port, browser), askAbout(port, browser), askAbout(port, browser)]
      // The response goes to a copy of the browser, so the browser itself never gets it.
      if (hour % 4 === 1) t.is((await browser.clone().fetch('/api/auth/profile')).statusCode, 200)
      if (hour % 4 === 3) t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
      for (const { status } of await Promise.all(asked)) t.is(status, 200)
    }
    t.deepEqual(idp.reuses, [])
  })
}

test('a session that forward-auth refreshed and the browser got later still works after refreshes with the old cookie', async t => {
  const { browser, port, idp, clock } = await startSignedIn(t)
  const old = browser.clone()
  clock.advanceSeconds(3600)
  t.is((await askAbout(port, browser)).status, 200)
  // The browser gets the session that forward-auth has refreshed, and does not use it for a long time.
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  for (let hour = 1; hour <= 5; hour++) {
    clock.advanceSeconds(3600)
    t.is((await askAbout(port, old)).status, 200)
  }
  t.is((await askAbout(port, browser)).status, 200)
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.deepEqual(idp.reuses, [])
})

test('without a session forward-auth responds with 401 and replaces the Authorization header of the client by an empty one', async t => {
  const { browser, port } = await start(t)
  for (const cookie of ['', 'platform_session=forged']) {
    const answer = await askForwardAuth(port, { headers: { cookie, authorization: 'Bearer of-the-client' } })
    t.is(answer.status, 401)
    t.is(answer.authorization, '')
    t.is(answer.body, '')
    t.is(answer.headers['set-cookie'], undefined)
  }
  t.deepEqual(sessionCookies(browser), [])
})

test('forward-auth responds with 503 and Retry-After while the provider is busy, and with 401 when it has ended the session', async t => {
  const { browser, port, clock, idp } = await startSignedIn(t)
  clock.advanceSeconds(3600)
  idp.fail('token', faults.tooManyRequests(7))
  const answer = await askAbout(port, browser)
  t.is(answer.status, 503)
  t.is(answer.headers['retry-after'], '7')
  t.is(answer.authorization, '')
  idp.endAllGrants()
  clock.advanceSeconds(8)
  t.is((await askAbout(port, browser)).status, 401)
})

test('if the account is no longer allowed, forward-auth responds with 403', async t => {
  const settings = { access: { allow: ['groups=admins'] }, platform: { scopes: ['openid', 'data:read'] } }
  const { browser, port, idp, clock } = await start(t, { settings })
  idp.settings.quirks = { idTokenOnRefresh: true }
  idp.settings.idTokenClaims = claims => ({ ...claims, groups: ['admins'] })
  await signIn(browser)
  idp.settings.idTokenClaims = claims => claims
  clock.advanceSeconds(3600)
  for (let n = 0; n < 2; n++) {
    const answer = await askAbout(port, browser)
    t.is(answer.status, 403)
    t.is(answer.authorization, '')
  }
})

test('forward-auth checks the origin of a request and each method that the gateway names, or else the method of the auth request', async t => {
  const { browser, port, origin } = await startSignedIn(t)
  const linked = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  // A WebSocket of our own page, whose handshake the gateway passes on.
  const handshake = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' }
  for (const [method, headers, status] of [
    ['GET', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 403],
    ['GET', { ...handshake, origin }, 200],
    ['GET', { ...handshake, origin: 'http://evil.localhost:8080' }, 403],
    ['GET', handshake, 403],
    ['GET', { 'x-forwarded-method': 'POST' }, 403],
    ['GET', { 'x-original-method': 'POST' }, 403],
    ['POST', { 'x-forwarded-method': 'GET' }, 200],
    ['GET', { 'x-forwarded-method': 'GET', 'x-original-method': 'DELETE' }, 403],
    ['GET', { 'x-forwarded-method': 'DELETE', 'x-original-method': 'GET' }, 403],
    ['GET', { 'x-forwarded-method': 'GET, GET' }, 403],
    ['GET', { 'x-forwarded-method': 'get' }, 403],
    ['GET', linked, 200],
    ['GET', { ...linked, 'x-forwarded-method': 'GET', 'x-original-method': 'POST' }, 403]
  ] as const) {
    const answer = await askForwardAuth(port, { method, headers: { cookie: sessionHeader(browser), ...headers } })
    t.is(answer.status, status, `${method} ${JSON.stringify(headers)}`)
    t.is(answer.authorization === '', status === 403)
  }
})

for (const body of ['Content-Length: 900', 'Transfer-Encoding: chunked']) {
  test(`${body}: if a gateway announces a body and sends none, the next user's request is not read as this body`, async t => {
    const { browser, port } = await startSignedIn(t)
    const lines = ['GET / HTTP/1.1', 'Host: localhost', `Cookie: ${sessionHeader(browser)}`, body]
    const { answers, closedByServer } = await sendRaw(port, `${lines.join('\r\n')}\r\n\r\n`)
    t.deepEqual([answers.map(({ statusCode }) => statusCode), closedByServer], [[200], true])
    t.regex(answers[0]?.head ?? '', /^Connection: close$/im)
  })
}

test('a connection on which a gateway has sent a body stays open', async t => {
  const { port } = await start(t)
  const post = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello'
  const { answers } = await sendRaw(port, [post, post], { answers: 2 })
  t.is(answers.length, 2)
})

// Serial, because it replaces the timers of the process: however slow the machine is, the time for the rest of a body never ends.
test.serial('a gateway can send a long body to the end, although the response does not wait for it', async t => {
  const { port } = await start(t)
  const { setTimeout } = globalThis
  const endless = ((callback: () => void, ms?: number) =>
    setTimeout(callback, ms === LINGER_MS ? 2 ** 31 - 1 : ms)) as typeof setTimeout
  globalThis.setTimeout = endless
  t.teardown(() => {
    globalThis.setTimeout = setTimeout
  })
  // More than the system buffers.
  const length = 32_000_000
  const sent = request({ host: '127.0.0.1', port, method: 'POST', agent: false, headers: { 'content-length': length } })
  sent.end(Buffer.alloc(length))
  const [[response]] = await Promise.all([once(sent, 'response'), once(sent, 'finish')])
  t.is((response as IncomingMessage).resume().headers.connection, 'close')
})

test('if a gateway lets browsers call the forward-auth port, the requests are rejected and a log line tells the operator', async t => {
  const { browser, port, logs } = await startSignedIn(t)
  const cookie = sessionHeader(browser)
  for (const spelling of ['/_forward_auth', '//_forward_auth', '/%5fforward_auth', '/x/../_forward_auth']) {
    const headers = { cookie, 'x-original-uri': spelling }
    t.is((await askForwardAuth(port, { path: '/_forward_auth', headers })).status, 403, spelling)
  }
  t.is((await askForwardAuth(port, { path: '/_forward_auth', headers: { cookie, 'x-original-uri': '/' } })).status, 200)
  t.truthy(logs.first('forward_auth_exposed'))
})

test('the public port does not respond to forward-auth requests for any path, method or host', async t => {
  const server = await startSignedIn(t, { mode: 'dual' })
  const { browser, port } = server
  const secret = openedFields(browser, server).internal_token as string
  const paths = ['/', '/_forward_auth', '/oauth2/auth', '/api/auth/forward', '/api/auth', `http://127.0.0.1:${port}/`]
  for (const path of paths) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS', 'PROPFIND']) {
      for (const host of ['localhost:8080', `127.0.0.1:${port}`]) {
        const forwarded = { 'x-forwarded-uri': '/page', 'x-original-uri': '/page', 'x-forwarded-method': 'GET' }
        const headers = { cookie: sessionHeader(browser), host, ...forwarded }
        const answer = await askForwardAuth(server.server.port, { method, path, headers })
        t.is(answer.authorization, undefined)
        t.false(`${JSON.stringify(answer.headers)}${answer.body}`.includes(secret))
      }
    }
  }
})

test('the port for forward-auth is not opened without forwardAuth.address, and a port in use fails the start and closes the earlier listeners', async t => {
  const local = (port: number) => `127.0.0.1:${port}`
  const metricsPort = await listen(t, createServer())
  const [port, forwardAuthPort] = [await freePort(), await freePort()]
  const settings = { port, forwardAuth: { address: local(forwardAuthPort) }, metrics: { address: local(metricsPort) } }
  t.like(await t.throwsAsync(startTestServer(t, { settings })), { code: 'EADDRINUSE', listener: 'metrics' })
  for (const closed of [port, forwardAuthPort]) await t.notThrowsAsync(listen(t, createServer(), closed))
  const { port: used } = await start(t)
  const failed = startTestServer(t, { settings: { forwardAuth: { address: local(used) } } })
  t.like(await t.throwsAsync(failed), { code: 'EADDRINUSE', listener: 'forwardAuth' })
  const { server } = await startTestServer(t)
  t.is(server.forwardAuthPort, undefined)
})
