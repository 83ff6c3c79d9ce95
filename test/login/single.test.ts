import test from 'ava'
import { createSingleMode } from '#src/login/mode.js'
import { completeLogin, modeContract, setUpMode } from './contract.js'

const scopes = ['data:read', 'account:read', 'account:write']
const single = {
  name: 'single',
  scopes,
  grants: 1,
  tokenFields: ['token'],
  names: [
    [{ name: 'Ada Lovelace', given_name: 'A', family_name: 'L' }, 'Ada Lovelace'],
    [{ name: '', given_name: 'Ada', family_name: 'Lovelace' }, 'Ada Lovelace'],
    [{ firstName: 'Ada', lastName: 'Lovelace', preferred_username: 'ada' }, 'Ada Lovelace']
  ],
  create: (parts, more = []) => createSingleMode({ scopes: [...scopes, ...more] }, parts)
} satisfies Parameters<typeof modeContract>[0]

modeContract(single)

test('single: tokens() returns the only token of the session both as the internal and as the public token', async t => {
  const { mode, clock } = setUpMode(single)
  t.false(mode.offersPublicToken)
  const tokens = mode.tokens((await completeLogin(mode)).fields, clock.now())
  t.deepEqual(tokens.internal, { access_token: 'access-token-1', expires_in: 3600 })
  t.is(tokens.public, tokens.internal)
})
