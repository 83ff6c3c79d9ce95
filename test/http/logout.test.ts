import test, { type ExecutionContext } from 'ava'
import { discovered } from '../helpers/config.js'
import { eventually } from '../helpers/eventually.js'
import { createHostileIdp, faults } from '../helpers/hostile-idp/index.js'
import { modes } from '../helpers/modes.js'
import { signIn, startTestServer } from '../helpers/server.js'

for (const mode of modes) {
  test(`${mode}: logout redirects to the start page and takes every cookie back`, async t => {
    const { browser, idp } = await startTestServer(t, { mode })
    idp.settings.accessTokenLength = 5000
    await signIn(browser)
    t.truthy(browser.cookies.get('platform_session.1'), 'a session in several chunks')
    const response = await browser.navigate('/api/auth/logout')
    t.is(response.statusCode, 302)
    t.is(response.headers.location, '/')
    t.is(response.body.length, 0)
    t.is(response.headers['cache-control'], 'no-store')
    t.deepEqual(browser.cookies.all(), [])
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
  })

  test(`${mode}: after logout no copy of the cookie works, from any generation`, async t => {
    const { browser, clock, idp } = await startTestServer(t, { mode })
    await signIn(browser)
    const first = browser.clone()
    clock.advanceSeconds(3600)
    await browser.fetch('/api/auth/profile')
    const second = browser.clone()
    await browser.navigate('/api/auth/logout')
    const before = idp.tokenRequests.length
    for (const copy of [first, second]) {
      const response = await copy.fetch('/api/auth/profile')
      t.is(response.statusCode, 401)
      t.is(response.body.length, 0)
    }
    t.is(idp.tokenRequests.length, before, 'kept results are refused as well, and nothing is refreshed')
  })

  test(`${mode}: revoke ends the newest refresh token at the provider, without keeping the browser waiting`, async t => {
    const { browser, clock, idp, logs } = await startTestServer(t, { mode })
    await signIn(browser)
    const old = browser.clone()
    clock.advanceSeconds(3600)
    await browser.fetch('/api/auth/profile')
    const hold = idp.hold('revoke')
    const response = await old.navigate('/api/auth/logout')
    t.is(response.statusCode, 302, 'answered while the revocation is still under way')
    await hold.arrived()
    hold.release()
    await eventually(() => logs.find(({ event }) => event === 'revoked') !== undefined)
    const [request] = idp.requestsTo('revoke')
    t.is(request?.form.token, idp.issued.refreshTokens.at(-1)?.value, 'although the browser came with an older cookie')
    t.is(request?.form.token_type_hint, 'refresh_token')
    t.regex(String(request?.headers.authorization), /^Basic /)
  })
}

test('logout works without a session, again and again, and with cookies that cannot be opened', async t => {
  const { browser, idp } = await startTestServer(t)
  for (let time = 0; time < 2; time++) t.is((await browser.navigate('/api/auth/logout')).statusCode, 302)
  browser.cookies.set('platform_session', '4nonsense', new URL('http://localhost:8080/'))
  browser.cookies.set('platform_session.2', 'more', new URL('http://localhost:8080/'))
  const response = await browser.navigate('/api/auth/logout')
  t.is(response.statusCode, 302)
  t.deepEqual(browser.cookies.all(), [])
  t.is(idp.requests.length, 0)
})

test('logout works while the provider is away, and says in the log that nothing was revoked', async t => {
  const { browser, idp, logs } = await startTestServer(t)
  await signIn(browser)
  await idp.offline()
  const response = await browser.navigate('/api/auth/logout')
  t.is(response.statusCode, 302)
  t.deepEqual(browser.cookies.all(), [])
  await eventually(() => logs.find(({ event }) => event === 'revocation_failed') !== undefined)
})

test('a revocation that is answered 503 is tried once more', async t => {
  const { browser, idp, logs } = await startTestServer(t)
  await signIn(browser)
  idp.fail('revoke', faults.status(503))
  await browser.navigate('/api/auth/logout')
  await eventually(() => logs.find(({ event }) => event === 'revoked') !== undefined)
  t.is(idp.requestsTo('revoke').length, 2)
})

test('a local logout does not call the provider', async t => {
  const { browser, idp } = await startTestServer(t, { overrides: { logout: 'local' } })
  await signIn(browser)
  const before = idp.requests.length
  await browser.navigate('/api/auth/logout')
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 401)
  t.is(idp.requests.length, before)
})

test('idp logout sends the browser on to the provider, with the way back', async t => {
  const overrides = { logout: 'idp', platform: { callbackUrl: 'https://app.example/base/api/auth/callback' } } as const
  const { browser, idp } = await startTestServer(t, { overrides })
  const { headers } = await browser.navigate('/base/api/auth/logout')
  const location = new URL(String(headers.location))
  t.is(location.origin + location.pathname, idp.endSessionEndpoint)
  t.deepEqual(
    [...location.searchParams],
    [
      ['post_logout_redirect_uri', 'https://app.example/base/'],
      ['client_id', idp.clientId]
    ]
  )
})

/** Its logout is the provider's, and where that is has yet to be discovered. */
async function startDiscovered(t: ExecutionContext) {
  const idp = await createHostileIdp(t)
  const platform = { ...discovered(idp), timeoutSeconds: 30 }
  return startTestServer(t, { idp, overrides: { logout: 'idp', platform } })
}

test('idp logout at a discovered provider names the client, and ends here when discovery fails', async t => {
  const { browser, idp } = await startDiscovered(t)
  await idp.offline()
  t.is((await browser.navigate('/api/auth/logout')).headers.location, '/')
  await idp.online()
  const location = new URL(String((await browser.navigate('/api/auth/logout')).headers.location))
  t.is(location.searchParams.get('client_id'), idp.clientId)
  t.is(location.searchParams.get('post_logout_redirect_uri'), 'http://localhost:8080/')
})

test('idp logout does not wait for a provider that says nothing; once that has answered, the next is sent on to it', async t => {
  const { browser, idp, logs } = await startDiscovered(t)
  const hold = idp.hold('discovery')
  const started = performance.now()
  const response = await browser.navigate('/api/auth/logout')
  // Slow machines pause; without a bound it would be thirty seconds.
  t.true(performance.now() - started < 15_000)
  t.is(response.headers.location, '/')
  t.like(
    logs.find(({ event }) => event === 'end_session_unavailable'),
    { err: { message: 'not done within 2000 ms' } }
  )
  hold.release()
  const next = await browser.navigate('/api/auth/logout')
  t.true(String(next.headers.location).startsWith(idp.endSessionEndpoint))
})

test('another site can send a person to logout, but not log them out in the background', async t => {
  const { browser } = await startTestServer(t)
  await signIn(browser)
  const cases = [
    ['image', 'no-cors'],
    ['script', 'no-cors'],
    ['iframe', 'navigate'],
    ['empty', 'cors']
  ]
  for (const site of ['cross-site', 'same-site']) {
    for (const [dest, mode] of cases) {
      const headers = { 'sec-fetch-site': site, 'sec-fetch-dest': dest, 'sec-fetch-mode': mode }
      const response = await browser.get('/api/auth/logout', { headers })
      t.is(response.statusCode, 403, `${site} ${dest}`)
      t.deepEqual(response.setCookies, [])
    }
  }
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  const navigation = await browser.navigate('/api/auth/logout', { from: 'https://elsewhere.example' })
  t.is(navigation.statusCode, 302)
})

test('logout never redirects to an address from the query', async t => {
  const { browser } = await startTestServer(t)
  for (const name of ['return_to', 'post_logout_redirect_uri', 'redirect_uri', 'next']) {
    const { headers } = await browser.navigate(`/api/auth/logout?${name}=https://evil.example/`)
    t.is(headers.location, '/')
  }
})
