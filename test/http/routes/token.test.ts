import test from 'ava'
import { signIn, startTestServer } from '../../helpers/server.js'

test('/api/auth/token returns only the access token for browsers and its remaining seconds', async t => {
  const { browser, clock, idp } = await startTestServer(t, { mode: 'dual' })
  await signIn(browser)
  clock.advance(1499)
  const response = await browser.fetch('/api/auth/token')
  t.is(response.statusCode, 200)
  const publicToken = idp.issued.accessTokens.find(({ scope }) => scope === 'viewables:read')
  t.deepEqual(response.json(), { access_token: publicToken?.value, expires_in: 3598 })
  clock.advance(2)
  t.is(
    (await browser.fetch('/api/auth/token')).json().expires_in,
    3597,
    'the remaining time is rounded to the nearest second'
  )
})

test('the response of /api/auth/token has headers that keep it out of caches and away from other origins', async t => {
  const { browser } = await startTestServer(t, { mode: 'dual' })
  await signIn(browser)
  const { headers } = await browser.fetch('/api/auth/token')
  t.is(headers['cache-control'], 'no-store')
  t.is(headers.pragma, 'no-cache')
  t.is(headers.vary, 'Cookie, Sec-Fetch-Site')
  t.is(headers['content-type'], 'application/json; charset=utf-8')
  t.is(headers['x-content-type-options'], 'nosniff')
  t.is(headers['cross-origin-resource-policy'], 'same-origin')
  t.is(headers['referrer-policy'], 'no-referrer')
  t.is(headers.etag, undefined)
  t.is(headers['set-cookie'], undefined, 'the session has not changed, so no cookie is set')
})

test('a request with an active session creates no logger, and a request that refreshes the session creates one', async t => {
  const { browser, clock, logs } = await startTestServer(t, { mode: 'dual', overrides: { log: { requests: false } } })
  await signIn(browser)
  let children = 0
  logs.log.onChild = () => {
    children += 1
  }
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  t.is(children, 0)
  clock.advanceSeconds(3601)
  t.is((await browser.fetch('/api/auth/token')).statusCode, 200)
  t.is(children, 1)
})

test('/api/auth/token does not exist in single mode', async t => {
  const { browser } = await startTestServer(t, { mode: 'single' })
  await signIn(browser)
  const response = await browser.fetch('/api/auth/token')
  t.is(response.statusCode, 404)
  t.is(response.json().error, 'not_found')
  const asked = await browser.get('/api/auth/token', { headers: { accept: 'application/json' } })
  t.is(asked.json().error, 'not_found')
  t.is(asked.json().error_description, 'This route exists in dual mode only (mode: dual).')
})

for (const path of ['/api/auth/token', '/api/auth/profile']) {
  test(`without a session ${path} answers 401 with an empty body and sets no cookie`, async t => {
    const { browser, idp } = await startTestServer(t, { mode: 'dual' })
    const response = await browser.fetch(path)
    t.is(response.statusCode, 401)
    t.is(response.body.length, 0)
    t.is(response.headers['content-length'], '0')
    t.deepEqual(response.setCookies, [])
    t.is(response.headers.location, undefined)
    t.is(idp.requests.length, 0)
  })

  test(`${path} rejects requests from other sites and hosts, and accepts requests without Sec-Fetch-Site`, async t => {
    const { browser } = await startTestServer(t, { mode: 'dual' })
    await signIn(browser)
    for (const [site, status] of [
      ['cross-site', 403],
      ['same-site', 403],
      ['same-origin', 200],
      ['none', 200],
      [undefined, 200]
    ] as const) {
      const { statusCode } = await browser.get(path, { headers: { 'sec-fetch-site': site } })
      t.is(statusCode, status, `Sec-Fetch-Site: ${site}`)
    }
  })

  test(`${path} rejects requests of other origins, and sends no CORS headers`, async t => {
    const { browser } = await startTestServer(t, { mode: 'dual' })
    await signIn(browser)
    for (const origin of ['https://evil.example', 'null', 'http://localhost:9999']) {
      for (const method of ['GET', 'OPTIONS']) {
        const headers = { origin, 'access-control-request-method': 'GET' }
        const response = await browser.request(method, path, { headers })
        const grants = Object.keys(response.headers).filter(name => name.startsWith('access-control-'))
        t.deepEqual(grants, [], `${method} from ${origin}`)
        t.is(response.statusCode, method === 'GET' ? 403 : 405)
      }
    }
  })

  for (const method of ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    test(`${path} rejects ${method} and names GET as the allowed method`, async t => {
      const { browser, idp } = await startTestServer(t, { mode: 'dual' })
      await signIn(browser)
      const before = idp.requests.length
      const response = await browser.request(method, path)
      t.is(response.statusCode, 405)
      t.is(response.headers.allow, 'GET')
      t.deepEqual(response.setCookies, [])
      t.is(idp.requests.length, before)
    })
  }
}

test('an access token in the address or in the Authorization header is ignored', async t => {
  const { browser, idp } = await startTestServer(t, { mode: 'dual' })
  await signIn(browser)
  const accessToken = idp.issued.accessTokens[0]?.value as string
  const stranger = browser.clone()
  stranger.cookies.clear()
  for (const [path, headers] of [
    [`/api/auth/token?access_token=${accessToken}`, {}],
    ['/api/auth/token', { authorization: `Bearer ${accessToken}` }]
  ] as const) {
    t.is((await stranger.get(path, { headers })).statusCode, 401)
  }
  const usual = await browser.get('/api/auth/token?scope=data:read&refresh=1&callback=cb')
  t.deepEqual(Object.keys(usual.json()), ['access_token', 'expires_in'])
})
