import test from 'ava'
import { words } from '../../helpers/words.js'
import { startSignedIn, statusesOf } from '../support.js'

test('a request with an active session creates no logger, and a request that refreshes the session creates one', async t => {
  const { browser, clock, logs } = await startSignedIn(t, { mode: 'dual', settings: { log: { requests: false } } })
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

test('an access token in the URL or in the Authorization header is ignored', async t => {
  const { browser, idp } = await startSignedIn(t, { mode: 'dual' })
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

test('every response of the token route, also an error, has the headers of the other routes', async t => {
  const { browser } = await startSignedIn(t, { mode: 'dual' })
  const other = await browser.get('/api/auth/profile')
  const stranger = browser.clone()
  stranger.cookies.clear()
  const responses = [
    await browser.get('/api/auth/token'),
    await stranger.get('/api/auth/token'),
    await stranger.navigate('/api/auth/token'),
    await browser.get('/api/auth/token', { headers: { 'sec-fetch-site': 'cross-site' } }),
    await browser.request('POST', '/api/auth/token')
  ]
  t.deepEqual(statusesOf(responses), [200, 401, 401, 403, 405])
  t.is(responses[2]?.headers.vary, 'Cookie, Sec-Fetch-Site, Accept, Accept-Language')
  for (const name of words`cache-control x-content-type-options referrer-policy cross-origin-resource-policy vary`) {
    for (const part of String(other.headers[name]).split(', ')) {
      for (const { headers } of responses) t.true(String(headers[name]).split(', ').includes(part), `${name}: ${part}`)
    }
  }
})
