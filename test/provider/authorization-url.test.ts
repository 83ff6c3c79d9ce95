import test from 'ava'
import { type AuthorizationRequest, authorizationUrl } from '#src/provider/client.js'
import { APS, type ProviderMetadata } from '#src/provider/metadata.js'
import { quirksOf } from '#src/provider/quirks.js'

const metadata: ProviderMetadata = {
  ...APS,
  jwksUri: undefined,
  issParameterSupported: false,
  scopesSupported: undefined,
  quirks: quirksOf(APS)
}
const request: AuthorizationRequest = {
  clientId: 'our client',
  redirectUri: 'https://app.example/api/auth/callback',
  scope: 'data:read account:read',
  state: 'a.state_of-it',
  nonce: undefined,
  prompt: undefined,
  codeChallenge: undefined
}

test('the authorization URL has the parameters of RFC 6749 section 4.1.1 in the order that APS documents', t => {
  const query = [
    'client_id=our+client',
    'response_type=code',
    'redirect_uri=https%3A%2F%2Fapp.example%2Fapi%2Fauth%2Fcallback',
    'state=a.state_of-it',
    'scope=data%3Aread+account%3Aread'
  ]
  t.is(authorizationUrl(metadata, request), `${APS.authorizationEndpoint}?${query.join('&')}`)
})

test('the authorization URL contains the nonce, the prompt and the code challenge if they are given', t => {
  const url = authorizationUrl(metadata, { ...request, nonce: 'n', prompt: 'login', codeChallenge: 'c' })
  t.deepEqual(
    [...new URL(url).searchParams.keys()],
    [
      'client_id',
      'response_type',
      'redirect_uri',
      'nonce',
      'state',
      'scope',
      'prompt',
      'code_challenge',
      'code_challenge_method'
    ]
  )
  const { searchParams } = new URL(url)
  t.is(searchParams.get('nonce'), 'n')
  t.is(searchParams.get('prompt'), 'login')
  t.is(searchParams.get('code_challenge'), 'c')
  t.is(searchParams.get('code_challenge_method'), 'S256')
})

test('the authorization URL keeps the query of the configured endpoint (RFC 6749 section 3.1)', t => {
  const authorizationEndpoint = 'https://idp.example/authorize?tenant=a%20b'
  const url = new URL(authorizationUrl({ ...metadata, authorizationEndpoint }, request))
  t.is(url.searchParams.get('tenant'), 'a b')
  t.is(url.searchParams.get('client_id'), 'our client')
})
