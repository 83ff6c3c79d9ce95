import test from 'ava'
import { createMode } from '#src/modes/mode.js'
import { testConfig, unreachableIdp } from '../helpers/config.js'
import { modes } from '../helpers/modes.js'
import { createFakeIdp } from './fake-idp.js'

const platform = { scopes: ['a', 'b'], internalScopes: ['c', 'd'], publicScopes: ['d'] }
const loginScopes = { single: 'a b', dual: 'c d' }

for (const mode of modes) {
  for (const pkce of [true, false]) {
    test(`createMode() creates the ${mode} mode with its scopes, which ${pkce ? 'sends' : 'does not send'} a code verifier`, async t => {
      const idp = createFakeIdp()
      const created = createMode(testConfig(unreachableIdp, { mode, platform: { ...platform, pkce } }), idp, Date.now)
      t.is(created.name, mode)
      t.is(created.loginScope, loginScopes[mode])
      await created.exchangeCode({ code: 'c', codeVerifier: 'v', nonce: 'n', timeoutMs: 60_000 })
      t.deepEqual(idp.grants, [{ type: 'code', code: 'c', codeVerifier: pkce ? 'v' : undefined }])
    })
  }
}
