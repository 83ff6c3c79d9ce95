// In dual mode a login or a refresh makes two requests to the token endpoint. The first one gets the wide-scope token that stays
// on the server (the internal token) and a refresh token. The second one uses that refresh token to get a token with fewer scopes
// for browsers (the public token).
import test from 'ava'
import { createDualMode } from '#src/login/mode.js'
import { ProviderError } from '#src/provider/provider-error.js'
import { completeLogin, completeRefresh, grant, modeContract, setUpMode, timeoutMs } from './contract.js'

const internalTokenScopes = ['data:read', 'viewables:read']
const publicTokenScopes = ['viewables:read']
const dual = {
  name: 'dual',
  scopes: internalTokenScopes,
  grants: 2,
  tokenFields: ['internal_token', 'public_token'],
  names: [
    [{ firstName: 'Ada', lastName: 'Lovelace', name: 'Countess' }, 'Ada Lovelace'],
    [{ given_name: 'Ada', family_name: 'Lovelace', name: 'Countess' }, 'Ada Lovelace'],
    [{ firstName: 'Ada', family_name: 'Lovelace' }, 'Ada Lovelace'],
    [{ firstName: 'Ada', name: 'Countess' }, 'Ada'],
    [{ lastName: 'Lovelace' }, 'Lovelace'],
    [{ firstName: ' ', given_name: 'Ada', lastName: '', family_name: 'Lovelace ' }, 'Ada Lovelace'],
    [{ name: 'Ada Lovelace' }, 'Ada Lovelace']
  ],
  create: (parts, more = []) =>
    createDualMode({ internalTokenScopes: [...internalTokenScopes, ...more], publicTokenScopes }, parts)
} satisfies Parameters<typeof modeContract>[0]

modeContract(dual)

test('dual: after the first request of a login or refresh the second one follows, as long as the internal token is valid', async t => {
  const { mode, clock } = setUpMode(dual)
  const { state } = await mode.exchangeCode(grant)
  t.true(mode.isSecondRequest(state))
  clock.advance(3_599_999)
  t.true(mode.isSecondRequest(state))
  clock.advance(1)
  t.false(mode.isSecondRequest(state))
  t.false(mode.isSecondRequest(await completeLogin(mode)))
})

test('dual: if the internal token has expired before the second request, the first request is repeated', async t => {
  const { mode, idp, clock } = setUpMode(dual)
  const { state } = await mode.exchangeCode(grant)
  clock.advanceSeconds(3600)
  const next = await mode.nextRequest(state, timeoutMs)
  t.is(next.state.fields.internal_token, 'access-token-2')
  t.like(next.state, { kind: 'half-refreshed', internalExpiresAt: clock.now() + 3_600_000 })
  t.like(idp.grants[1], { refreshToken: 'refresh-token-1', scope: 'data:read viewables:read' })
})

for (const scope of [['viewables:read', 'data:read'], ['data:read'], internalTokenScopes]) {
  test(`dual: a public token with the scopes "${scope.join(' ')}" is rejected at login and at refresh, and the error keeps the new refresh token`, async t => {
    const { mode, idp } = setUpMode(dual)
    const { state } = await mode.exchangeCode(grant)
    for (const first of [state, (await mode.nextRequest(await completeLogin(mode), timeoutMs)).state]) {
      idp.next({ scope })
      const request = mode.nextRequest(first, timeoutMs)
      const error = await t.throwsAsync(request, { instanceOf: ProviderError, message: /more than/ })
      t.is(ProviderError.refreshTokenOf(error), idp.newestRefreshToken)
    }
  })
}

test('dual: a public token with the requested scopes or without scopes is accepted at login and at refresh', async t => {
  // Keycloak adds the scopes of OpenID Connect.
  const ofKeycloak = ['openid', 'profile', 'email', 'viewables:read']
  for (const scope of [undefined, [], ['viewables:read'], ['viewables:read', 'viewables:read'], ofKeycloak]) {
    const { mode, idp } = setUpMode(dual)
    idp.next({}, { scope })
    const login = await completeLogin(mode)
    t.is(login.fields.public_token, 'access-token-2')
    idp.next({}, { scope })
    await t.notThrowsAsync(completeRefresh(mode, login))
  }
})

test('dual: the error about too many scopes lists them, and shows no part of a token', async t => {
  const { mode, idp } = setUpMode(dual)
  const accessToken = 'a-secret-access-token'
  idp.next({}, { scope: ['openid', 'viewables:read', 'data:read', 'made-up', 'secret-access', 'ü'], accessToken })
  const error = await t.throwsAsync(completeLogin(mode))
  t.regex(error?.message ?? '', /more than the public scopes \(data:read, made-up, 2 more\)$/)
  t.false(JSON.stringify(error).includes('refresh-token'))
})

test('dual: a provider that returns the internal token again as the public token is rejected', async t => {
  const { mode, idp } = setUpMode(dual)
  idp.next({ accessToken: 'the same token' }, { accessToken: 'the same token' })
  await t.throwsAsync(completeLogin(mode), { message: /more than the public scopes \(data:read\)$/ })
})
