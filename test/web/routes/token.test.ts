import test from 'ava'
import { startSignedIn } from '../support.js'

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
