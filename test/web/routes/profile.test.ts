import test from 'ava'
import { type Fault, faults } from '../../helpers/hostile-idp/index.js'
import { modes } from '../../helpers/modes.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { startSignedIn } from '../support.js'

for (const mode of modes) {
  test(`${mode}: a failed user info request makes the profile 502, a timeout 504, a busy provider 503 with its Retry-After, and the session stays`, async t => {
    const { browser, clock, idp } = await startSignedIn(t, { mode })
    const failures: readonly (readonly [string, Fault, number, string?])[] = [
      ['a rejected token', faults.error('invalid_token', 401), 502],
      ['a server error', faults.status(500), 502],
      ['broken JSON', faults.notJson(), 502],
      ['a huge response', faults.giant(), 502],
      ['a cut connection', faults.reset(), 502],
      ['a 429', faults.tooManyRequests(37), 503, '37'],
      ['a 429 in HTML without Retry-After', faults.html(429), 503, '5'],
      ['a 503 with Retry-After', faults.answer({ status: 503, headers: { 'retry-after': '120' } }), 503, '120'],
      ['no response', faults.hang(), 504]
    ]
    // The server with the short time limit is a second replica, because other requests could exceed the limit on a slow machine.
    const impatient = await startTestServer(t, { mode, idp, clock, settings: { platform: { timeout: 0.3 } } })
    for (const [name, fault, status, retryAfter] of failures) {
      idp.failWhen('userinfo', () => fault)
      if (status === 504) impatient.connect(browser)
      const { statusCode, headers, json, setCookies } = await browser.fetch('/api/auth/profile')
      t.deepEqual([statusCode, headers['retry-after'], setCookies], [status, retryAfter, []], name)
      t.deepEqual(Object.keys(json()), ['error', 'error_description', 'request_id'], name)
      if (status === 503) t.deepEqual([json().error, headers.refresh], ['temporarily_unavailable', undefined], name)
    }
    idp.heal()
    const sane = await startTestServer(t, { mode, idp, clock })
    sane.connect(browser)
    t.is((await browser.fetch('/api/auth/profile')).statusCode, 200)
  })

  // test/login/profiles.test.ts has the rules of the cache.
  test(`${mode}: with profile.cacheTtl a display name is cached until the logout`, async t => {
    const { browser, idp } = await startSignedIn(t, { mode, settings: { profile: { cacheTtl: 30 } } })
    for (let time = 0; time < 2; time++) await browser.fetch('/api/auth/profile')
    t.is(idp.requestsTo('userinfo').length, 1)
    await browser.navigate('/api/auth/logout')
    await signIn(browser)
    t.is((await browser.fetch('/api/auth/profile')).json().name, 'Ada Lovelace')
    t.is(idp.requestsTo('userinfo').length, 2)
  })

  const subOnly = faults.answer({ status: 200, body: { sub: 'user-1' } })
  const refused = faults.error('invalid_token', 401)
  for (const [what, claims, fault, status, name] of [
    ['user info has a name', { name: 'Ada of the token' }, faults.none, 200, 'Ada Lovelace'],
    ['ADFS: user info has sub only', { name: 'Ada' }, subOnly, 200, 'Ada'],
    ['neither has a name', {}, subOnly, 200, 'user-1'],
    ['Entra: user info refuses the token', { name: 'Ada' }, refused, 200, 'Ada'],
    ['user info forbids it', { preferred_username: 'ada' }, faults.html(403), 200, 'ada'],
    ['a long name', { name: 'x'.repeat(101) }, refused, 200, 'x'.repeat(100)],
    ['user info refuses the token, and the ID token has no name', {}, refused, 502, undefined],
    ['user info is down', { name: 'Ada' }, faults.status(500), 502, undefined]
  ] as const) {
    test(`${mode}: the display name comes from the user info, the ID token or sub: ${what}`, async t => {
      const openid = ['openid', 'data:read']
      const platform = { scopes: openid, internalTokenScopes: openid, publicTokenScopes: ['data:read'] }
      const { browser, idp } = await startTestServer(t, { mode, settings: { platform } })
      idp.settings.idTokenClaims = right => ({ ...right, ...claims })
      await signIn(browser)
      idp.failWhen('userinfo', () => fault)
      const response = await browser.fetch('/api/auth/profile')
      t.deepEqual([response.statusCode, response.json().name], [status, name])
    })
  }
}
