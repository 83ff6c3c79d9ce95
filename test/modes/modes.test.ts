import test from 'ava'
import { createMode } from '#src/modes/modes.js'
import { testConfig } from '../helpers/config.js'
import { modes } from '../helpers/modes.js'
import { createFakeIdp } from './fake-idp.js'

const idpSettings = {
  clientId: 'our-client',
  clientSecret: 'the-client-secret',
  authorizationEndpoint: 'https://idp.example/authorize',
  tokenEndpoint: 'https://idp.example/token',
  userinfoEndpoint: 'https://idp.example/userinfo',
  revocationEndpoint: 'https://idp.example/revoke',
  endSessionEndpoint: 'https://idp.example/logout'
}

test('createMode() creates the configured mode with the scopes of that mode', t => {
  const platform = { scopes: ['a', 'b'], internalScopes: ['c', 'd'], publicScopes: ['d'] }
  const loginScopes = { single: 'a b', dual: 'c d' }
  for (const mode of modes) {
    const created = createMode(testConfig(idpSettings, { mode, platform }), createFakeIdp(), Date.now)
    t.is(created.name, mode)
    t.is(created.loginScope, loginScopes[mode])
  }
})

test('a code verifier is sent if the PKCE setting is on, and not if it is off', async t => {
  for (const pkce of [true, false]) {
    const idp = createFakeIdp()
    const created = createMode(testConfig(idpSettings, { platform: { pkce } }), idp, Date.now)
    await created.exchangeCode({ code: 'c', codeVerifier: 'v', nonce: 'n', timeoutMs: 60_000 })
    t.deepEqual(idp.grants, [{ type: 'code', code: 'c', codeVerifier: pkce ? 'v' : undefined }])
  }
})
