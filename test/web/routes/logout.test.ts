import test from 'ava'
import { eventually } from '../../helpers/eventually.js'
import { modes } from '../../helpers/modes.js'
import { startTestServer } from '../../helpers/server.js'
import { httpsCallbackUrl, startDiscovered, startSignedIn } from '../support.js'

for (const mode of modes) {
  test(`${mode}: logout revokes the newest refresh token in the background, even with an older cookie, and no copy of a cookie is accepted afterwards`, async t => {
    const { browser, clock, idp, logs } = await startSignedIn(t, { mode })
    const old = browser.clone()
    const copy = browser.clone()
    clock.advanceSeconds(3600)
    await browser.fetch('/api/auth/profile')
    const before = idp.tokenRequests.length
    const hold = idp.hold('revoke')
    const response = await old.navigate('/api/auth/logout')
    t.is(response.statusCode, 302, 'the response does not wait for the revocation')
    await hold.arrived()
    hold.release()
    await eventually(() => logs.first('refresh_token_revoked') !== undefined)
    const sessions = ['login_succeeded', 'refresh_succeeded', 'logout_succeeded', 'refresh_token_revoked'].map(
      event => logs.first(event)?.session
    )
    t.regex(String(sessions[0]), /^[\w-]{8}$/)
    t.is(new Set(sessions).size, 1, 'an operator can follow the session in the log')
    const [request] = idp.requestsTo('revoke')
    const newest = idp.issued.refreshTokens.at(-1)?.value
    t.is(request?.form.token, newest, 'the browser sent an older cookie, but the newest token is revoked')
    t.is(request?.form.token_type_hint, 'refresh_token')
    t.regex(String(request?.headers.authorization), /^Basic /)
    for (const one of [copy, browser]) {
      const rejected = await one.fetch('/api/auth/profile')
      t.deepEqual([rejected.statusCode, rejected.body.length], [401, 0])
    }
    t.is(idp.tokenRequests.length, before, 'the server neither returns a kept session nor refreshes one')
  })
}

test('logout works while the provider is down, and the log says that the revocation failed', async t => {
  const { browser, idp, logs } = await startSignedIn(t)
  await idp.offline()
  const response = await browser.navigate('/api/auth/logout')
  t.is(response.statusCode, 302)
  t.deepEqual(browser.cookies.all(), [])
  await eventually(() => logs.first('revocation_failed') !== undefined)
})

test('with logout: idp the browser is redirected to the discovered endpoint without its return_to, or to the start page if discovery fails', async t => {
  const { browser, idp } = await startDiscovered(t, {
    settings: { logout: { revoke: false, idp: true }, platform: { timeout: 30 } }
  })
  await idp.offline()
  t.is((await browser.navigate('/api/auth/logout')).headers.location, '/')
  await idp.online()
  const { headers } = await browser.navigate('/api/auth/logout?return_to=%2Fgoodbye')
  const location = new URL(String(headers.location))
  t.is(location.origin + location.pathname, idp.endSessionEndpoint)
  t.false(location.href.includes('goodbye'))
  t.is(location.searchParams.get('client_id'), idp.clientId)
  t.is(location.searchParams.get('post_logout_redirect_uri'), 'http://localhost:8080/')
})

test('with logout: idp the response does not wait for a slow discovery, and after the discovery the next logout is redirected to the provider', async t => {
  const { browser, idp, logs } = await startDiscovered(t, {
    settings: { logout: { revoke: false, idp: true }, platform: { timeout: 30 } }
  })
  const hold = idp.hold('discovery')
  const started = performance.now()
  const response = await browser.navigate('/api/auth/logout')
  // The bound allows for pauses of a slow machine. Without the limit of two seconds the call would take thirty.
  t.true(performance.now() - started < 15_000)
  t.is(response.headers.location, '/')
  t.like(logs.first('end_session_failed'), { err: { message: 'not done within 2000 ms' } })
  hold.release()
  const next = await browser.navigate('/api/auth/logout')
  t.true(String(next.headers.location).startsWith(idp.endSessionEndpoint))
})

for (const [query, location] of [
  ['return_to=%2Fgoodbye%3Fby%3Dme', '/goodbye?by=me'],
  // The query of the path contains no parameter of the logout.
  ['return_to_raw=/my%20page?a=1&everywhere=true', '/my%20page?a=1&everywhere=true']
]) {
  test(`logout redirects to a path of this origin: ${query}`, async t => {
    const { browser } = await startSignedIn(t)
    t.is((await browser.navigate(`/api/auth/logout?${query}`)).headers.location, location)
    t.deepEqual(browser.cookies.all(), [])
  })
}

test('logout without a usable return_to redirects to the start page, below the base path if there is one', async t => {
  const { browser } = await startTestServer(t, { settings: { platform: { callbackUrl: httpsCallbackUrl } } })
  const paths = ['/', '//evil.example', '/a&return_to=/b', '%2F%5Cevil.example'].map(path => `?return_to=${path}`)
  const names = ['return_to', 'post_logout_redirect_uri', 'redirect_uri', 'next']
  for (const query of ['', ...paths, ...names.map(name => `?${name}=https://evil.example/`)]) {
    const { headers } = await browser.navigate(`/tools/viewer/api/auth/logout${query}`)
    t.is(headers.location, '/tools/viewer/', query)
  }
})
