import test from 'ava'
import { faults } from '../../helpers/hostile-idp/index.js'
import { modes } from '../../helpers/modes.js'
import { signIn, startTestServer } from '../../helpers/server.js'
import { startSignedIn } from '../support.js'

for (const mode of modes) {
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
