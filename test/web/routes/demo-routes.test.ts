// The routes with which the starter page of a demo shows that many requests cause one refresh.
import test, { type ExecutionContext } from 'ava'
import { modes } from '../../helpers/modes.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { startSignedIn, statusesOf } from '../support.js'

const calls = { refreshToken: 0, reusedRefreshToken: 0 }
const demoOf = (t: ExecutionContext, mode: (typeof modes)[number] = 'single') =>
  startTestServer(t, { mode, parts: { demo: { calls } } })

for (const mode of modes) {
  test(`${mode} mode: after the session of a demo has expired, it is refreshed, and the session of another browser is not`, async t => {
    const { browser, newBrowser, idp } = await demoOf(t, mode)
    await signIn(browser)
    const other = newBrowser()
    await signIn(other)
    for (const [one, calls] of [
      [browser, mode === 'dual' ? 2 : 1],
      [other, 0]
    ] as const) {
      const expired = await browser.fetch('/demo/expire', { method: 'POST' })
      t.deepEqual([expired.statusCode, expired.text()], [204, ''])
      const before = idp.tokenRequests.length
      t.is((await one.fetch('/api/auth/profile')).statusCode, 200)
      t.is(idp.tokenRequests.length - before, calls)
    }
  })
}

test('the page of a demo can read how many refreshes the identity provider has received', async t => {
  const { browser } = await demoOf(t)
  const answer = await browser.fetch('/demo/calls')
  t.deepEqual(answer.json(), calls)
  t.is(answer.headers['cache-control'], 'no-store')
})

test('a session expires only if a page of the same origin and host asks for it, and nobody is signed in without a session', async t => {
  const { browser, idp } = await demoOf(t)
  t.is((await browser.fetch('/demo/expire', { method: 'POST' })).statusCode, 401)
  await signIn(browser)
  const before = idp.tokenRequests.length
  const otherHost = { host: 'evil.example:8080' }
  const refused = [
    await browser.fetch('/demo/expire', { method: 'POST', from: 'https://evil.example' }),
    await browser.navigate('/demo/expire', { from: 'https://evil.example' }),
    await browser.fetch('/demo/expire'),
    await browser.fetch('/demo/calls', { headers: otherHost }),
    await browser.fetch('/demo/expire', { method: 'POST', headers: otherHost })
  ]
  t.deepEqual(statusesOf(refused), [403, 404, 404, 404, 405])
  t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  t.is(idp.tokenRequests.length, before)
})

test('without a demo the routes do not exist', async t => {
  const { browser } = await startSignedIn(t)
  const missing = [await browser.fetch('/demo/expire', { method: 'POST' }), await browser.fetch('/demo/calls')]
  for (const { statusCode, headers } of missing) {
    t.true(statusCode === 404 || statusCode === 405, String(statusCode))
    t.is(headers['set-cookie'], undefined)
  }
})
