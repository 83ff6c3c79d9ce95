import test from 'ava'
import { findSecrets } from './byte-recorder.js'
import { discovered } from './config.js'
import { createHostileIdp } from './hostile-idp/index.js'
import { modes } from './modes.js'
import { signIn, startTestServer } from './server.js'

for (const mode of modes) {
  test(`a browser signs in at a server in ${mode} mode that listens on a free port`, async t => {
    const { browser, idp, recorder, logs } = await startTestServer(t, { mode })
    const callback = await signIn(browser, { returnTo: '/page' })
    t.is(callback.headers.location, '/page')
    t.is(idp.tokenRequests.length, mode === 'single' ? 1 : 2)
    t.is((await browser.fetch('/api/auth/profile')).json().name, 'Ada Lovelace')
    t.true(recorder.byteCount > 0)
    t.true(logs.entries.length > 0)
  })
}

test('a test can use an https callback address and move the clock', async t => {
  const callbackUrl = 'https://app.example/base/api/auth/callback'
  const { browser, clock, idp } = await startTestServer(t, { overrides: { platform: { callbackUrl } } })
  await signIn(browser)
  t.true(browser.cookies.all().every(({ name, secure }) => name.startsWith('__Host-') && secure))
  clock.advanceSeconds(3600)
  t.is((await browser.fetch('/base/api/auth/profile')).statusCode, 200)
  t.is(idp.tokenRequests.length, 2)
})

test('a browser can be moved from one server to another with the same provider, as between two replicas', async t => {
  const first = await startTestServer(t)
  const second = await startTestServer(t, { idp: first.idp, clock: first.clock })
  await signIn(first.browser)
  second.connect(first.browser)
  t.is((await first.browser.fetch('/api/auth/profile')).statusCode, 200)
  t.true(second.recorder.byteCount > 0)
})

test('a test server can read its endpoints from the discovery document', async t => {
  const idp = await createHostileIdp(t)
  const { browser } = await startTestServer(t, { idp, overrides: { platform: discovered(idp) } })
  await signIn(browser)
  t.is(idp.requestsTo('discovery').length, 1)
})

test('neither the recorded bytes nor the logs of a login contain a secret, and the search finds a token that was sent', async t => {
  const { browser, idp, recorder, logs, config } = await startTestServer(t, { mode: 'dual' })
  await signIn(browser)
  const publicToken = (await browser.fetch('/api/auth/token')).json<{ access_token: string }>().access_token
  recorder.assertNone(
    t,
    [...idp.secrets({ except: config.platform.publicScopes.join(' ') }), config.session.secret],
    logs.lines
  )
  t.is(findSecrets(recorder.sent(), [publicToken]).length, 1)
})
