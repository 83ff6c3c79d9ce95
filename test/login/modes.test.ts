import test from 'ava'
import { firstName } from '#src/login/grants.js'
import { createMode } from '#src/login/mode.js'
import { testConfig, unreachableIdp } from '../helpers/config.js'
import { modes } from '../helpers/modes.js'
import { createFakeIdp } from './fake-idp.js'

const platform = { scopes: ['a', 'b'], internalTokenScopes: ['c', 'd'], publicTokenScopes: ['d'] }
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

test('firstName() cuts a name after a thousand characters, and changes neither markup nor the writing direction', t => {
  for (const length of [1000, 10_000]) t.is(firstName('x'.repeat(length)).length, 1000)
  for (const name of ['<script>alert(1)</script>', '\u202Eecila', '"};']) t.is(firstName(name), name)
})
