// The transport imports got at its first call. This import comes first, so that loading got does not count toward the time limits
// of the calls in these tests.
import 'got'
import test, { type ExecutionContext } from 'ava'
import { createIdentityProvider, type IdentityProvider } from '#src/provider/client.js'
import { APS } from '#src/provider/metadata.js'
import { OAuthError, ProviderError } from '#src/provider/provider-error.js'
import { createTransport } from '#src/provider/transport.js'
import { discovered, type TestSettings, testConfig, unreachableIdp } from '../helpers/config.js'
import { createDeferred } from '../helpers/deferred.js'
import { jwt } from '../helpers/jwt.js'
import { abortPendingRequests, type MockedHost, mockHost } from '../helpers/nock.js'
import { answering, responseWith } from './answering.js'
import { holdsNone } from './secrets.js'

const clientId = 'our-client'
const clientSecret = 'the-client-secret'
const tokens = { access_token: 'an-access-token', refresh_token: 'a-refresh-token', expires_in: 3599 }
const secrets = [clientSecret, 'the-code', 'the-verifier', 'the-refresh-token', 'the-access-token']
const codeGrant = { code: 'the-code', codeVerifier: 'the-verifier' }
const refreshGrant = { refreshToken: 'the-refresh-token', scope: 'data:read viewables:read' }

interface Seen {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

interface SetUp extends MockedHost {
  readonly idp: IdentityProvider
  /** Expects one POST request to the path (GET for user info) and responds. Returns an array that will contain the request. */
  expect(path: string, status: number, body?: unknown, headers?: Record<string, string>): Seen[]
}

function setUp(t: ExecutionContext, settings: Partial<TestSettings['platform']> = {}): SetUp {
  const host = mockHost(t)
  const urlOf = (path: string) => `${host.origin}/${path}`
  const { platform } = testConfig(
    {
      clientId,
      clientSecret,
      authorizationEndpoint: urlOf('authorize'),
      tokenEndpoint: urlOf('token'),
      userinfoEndpoint: urlOf('userinfo'),
      revocationEndpoint: urlOf('revoke'),
      endSessionEndpoint: urlOf('logout')
    },
    { platform: { callbackUrl: 'https://app.example/api/auth/callback', ...settings } }
  )
  const transport = createTransport(platform.timeoutSeconds * 1000)
  t.teardown(() => transport.close())
  return {
    ...host,
    idp: createIdentityProvider(platform, transport),
    expect(path, status, body = '', headers = {}) {
      const seen: Seen[] = []
      const method = path === '/userinfo' ? 'GET' : 'POST'
      host.scope.intercept(path, method).reply(function (_uri, sent) {
        seen.push({ body: String(sent), headers: this.req.headers as unknown as Record<string, string> })
        return [status, body as string, headers]
      })
      return seen
    }
  }
}

/** Sends a request of each kind that contains the credentials of the client. */
async function authenticatedRequests({ idp, expect }: SetUp): Promise<(Seen | undefined)[]> {
  const seen = [expect('/token', 200, tokens), expect('/token', 200, tokens), expect('/revoke', 200)]
  await idp.authorizationCodeGrant(codeGrant)
  await idp.refreshTokenGrant(refreshGrant)
  await idp.revokeRefreshToken('the-refresh-token')
  return seen.map(([request]) => request)
}

const credentials: readonly (readonly [id: string, secret: string, encoded: string])[] = [
  ['our-client', 'the_client.secret*', 'our-client:the_client.secret*'],
  ['a b', 'c:d%20+/=~&', 'a+b:c%3Ad%2520%2B%2F%3D%7E%26'],
  ['ü', 'ß€', '%C3%BC:%C3%9F%E2%82%AC']
]

for (const [id, secret, encoded] of credentials) {
  const header = `Basic ${Buffer.from(encoded).toString('base64')}`

  test(`client id ${id} and secret ${secret} are form-encoded in the Basic header (RFC 6749 section 2.3.1) and are not in the body`, async t => {
    for (const request of await authenticatedRequests(setUp(t, { clientId: id, clientSecret: secret }))) {
      t.is(request?.headers.authorization, header)
      t.notRegex(request?.body ?? '', /client_/)
    }
  })
}

test('for APS, client id and secret are in the Basic header without form encoding', async t => {
  const document = {
    issuer: APS.issuer,
    authorization_endpoint: APS.authorizationEndpoint,
    token_endpoint: APS.tokenEndpoint,
    revocation_endpoint: APS.revocationEndpoint
  }
  const header = `Basic ${Buffer.from('our-client:c:d%20+/=').toString('base64')}`
  for (const issuer of [undefined, APS.issuer]) {
    const { platform } = testConfig({ clientId, clientSecret, ...APS }, { platform: { ...discovered(APS), issuer } })
    const transport = answering(responseWith(200, { ...document, ...tokens }))
    const idp = createIdentityProvider({ ...platform, clientSecret: 'c:d%20+/=' }, transport)
    await idp.refreshTokenGrant(refreshGrant)
    await idp.revokeRefreshToken('the-refresh-token')
    for (const request of transport.requests.slice(-2)) t.is(request.headers?.authorization, header)
  }
})

test('with client_secret_post the client credentials are in the body and not in a header', async t => {
  const setting = { clientAuthMethod: 'client_secret_post', clientSecret: 'a b&c' } as const
  for (const request of await authenticatedRequests(setUp(t, setting))) {
    t.is(request?.headers.authorization, undefined)
    const form = new URLSearchParams(request?.body)
    t.deepEqual(form.getAll('client_id'), ['our-client'])
    t.deepEqual(form.getAll('client_secret'), ['a b&c'])
  }
})

test('after the client secret was replaced, the next request uses the new secret in the header or in the body', async t => {
  for (const clientAuthMethod of ['client_secret_basic', 'client_secret_post'] as const) {
    const { idp, expect } = setUp(t, { clientAuthMethod })
    expect('/token', 200, tokens)
    await idp.refreshTokenGrant(refreshGrant)
    const seen = expect('/token', 200, tokens)
    idp.replaceCredentials(testConfig({ clientId, clientSecret: 'a-newer-secret', ...APS }).platform)
    await idp.refreshTokenGrant(refreshGrant)
    const { authorization = '' } = seen[0]?.headers ?? {}
    const sent = `${seen[0]?.body} ${Buffer.from(authorization.slice(6), 'base64')}`
    t.true(sent.includes('a-newer-secret'))
    t.false(sent.includes(clientSecret))
  }
})

type Expected = { readonly error: string } | 'invalid_response'
const gateway = (errorCode: string) => ({ developerMessage: 'no', userMessage: '', errorCode, 'more info': 'http://x' })
const failures: readonly (readonly [status: number, body: unknown, expected: Expected])[] = [
  [400, { error: 'invalid_grant', error_description: 'the-refresh-token is dead' }, { error: 'invalid_grant' }],
  [401, { error: 'invalid_client' }, { error: 'invalid_client' }],
  [403, gateway('AUTH-001'), { error: 'invalid_client' }],
  [401, gateway('AUTH-003'), { error: 'invalid_client' }],
  [403, gateway('AUTH-010'), 'invalid_response'],
  [500, gateway('AUTH-001'), 'invalid_response'],
  [429, { error: 'invalid_grant' }, 'invalid_response'],
  [500, { error: 'invalid_grant' }, 'invalid_response'],
  [400, { error: 'the-refresh-token' }, 'invalid_response'],
  [400, { error: 'kT7TCqVQn6mwbQ8cT6Xb2zNpLr3sVYwd5fGhJkQe1Z' }, 'invalid_response'],
  [400, { error: 'a'.repeat(65) }, 'invalid_response'],
  [400, { error: '' }, 'invalid_response'],
  [400, { error: 5 }, 'invalid_response'],
  [400, { error: { code: 'invalid_grant' } }, 'invalid_response'],
  [400, ['invalid_grant'], 'invalid_response'],
  [400, '<html>the-refresh-token</html>', 'invalid_response'],
  [204, '', 'invalid_response'],
  [302, '', 'invalid_response'],
  [200, '', 'invalid_response'],
  [200, { error: 'invalid_grant' }, { error: 'invalid_grant' }],
  [200, { error: 'the-refresh-token' }, 'invalid_response'],
  [200, { ...tokens, access_token: undefined, note: 'the-refresh-token' }, 'invalid_response']
]

for (const [status, body, expected] of failures) {
  const outcome = expected === 'invalid_response' ? 'an unusable response' : `the OAuth error ${expected.error}`
  test(`${status} with ${JSON.stringify(body).slice(0, 60)} is ${outcome}, and the error contains no secret`, async t => {
    const { idp, expect } = setUp(t)
    for (const call of [() => idp.authorizationCodeGrant(codeGrant), () => idp.refreshTokenGrant(refreshGrant)]) {
      expect('/token', status, body)
      const error = await t.throwsAsync<Error>(call)
      holdsNone(t, error, secrets)
      if (expected === 'invalid_response') {
        t.true(error instanceof ProviderError)
        t.like(error, { endpoint: 'token', problem: 'invalid_response' })
        if (status !== 200) t.is((error as ProviderError).status, status)
      } else {
        t.true(error instanceof OAuthError)
        t.like(error, { endpoint: 'token', status, error: expected.error })
      }
    }
  })
}

test('an error with an OAuth code has the seconds of Retry-After too, because the pause after a failed refresh depends on them', async t => {
  const { idp, expect } = setUp(t)
  expect('/token', 400, { error: 'slow_down' }, { 'retry-after': '17' })
  t.like(await t.throwsAsync(idp.refreshTokenGrant(refreshGrant)), { error: 'slow_down', retryAfterSeconds: 17 })
})

const asJwt = { 'content-type': 'application/jwt; charset=utf-8' }
const user = { sub: 'user-1', given_name: 'Ada' }

test('user info is requested with the access token, and is JSON or a JWT for this client (OpenID Connect Core section 5.3.2)', async t => {
  const { idp, expect } = setUp(t)
  const jwts = [user, { ...user, aud: clientId }, { ...user, aud: ['other', clientId] }].map(claims => jwt(claims))
  for (const [body, headers] of [[user, {}] as const, ...jwts.map(token => [token, asJwt] as const)]) {
    const seen = expect('/userinfo', 200, body, headers)
    t.like(await idp.userInfo('the-access-token', 'user-1'), user)
    t.is(seen[0]?.headers.authorization, 'Bearer the-access-token')
  }
})

const unusableUserInfo: readonly (readonly [why: RegExp, status: number, body: unknown, headers?: typeof asJwt])[] = [
  [/responded with 401/, 401, ''],
  [/responded with 403/, 403, { errorCode: 'AUTH-010' }],
  [/responded with 429/, 429, {}],
  [/responded with 302/, 302, ''],
  [/responded with 204/, 204, ''],
  [/not a JSON object/, 200, ''],
  [/not a JSON object/, 200, 'null'],
  [/not a JSON object/, 200, '"Ada"'],
  [/not a JSON object/, 200, '["Ada"]'],
  // A JWT has another content type.
  [/not a JSON object/, 200, jwt(user)],
  [/sub is not that of the login/, 200, { ...user, sub: 'user-2' }],
  [/sub is not that of the login/, 200, { given_name: 'Ada' }],
  [/sub is not that of the login/, 200, jwt({ ...user, sub: 'user-2' }), asJwt],
  [/aud does not name this client/, 200, jwt({ ...user, aud: 'other' }), asJwt],
  [/not signed/, 200, jwt(user, { alg: 'none' }), asJwt],
  [/not signed/, 200, jwt(user, { alg: 'NoNe' }), asJwt],
  [/not signed/, 200, jwt(user, {}), asJwt],
  [/encrypted user info is not supported/, 200, `${jwt(user)}.a.b`, asJwt],
  [/encrypted user info is not supported/, 200, 'hello', asJwt]
]

for (const [index, [why, status, body, headers]] of unusableUserInfo.entries()) {
  test(`user info is unusable, and the error contains no secret (${index}: ${why.source})`, async t => {
    const { idp, expect } = setUp(t)
    expect('/userinfo', status, body, headers)
    const error = await t.throwsAsync(idp.userInfo('the-access-token', 'user-1'), { instanceOf: ProviderError })
    t.like(error, { endpoint: 'userinfo', problem: 'invalid_response' })
    t.regex(error?.message ?? '', why)
    holdsNone(t, error, [...secrets, 'user-1', 'user-2', 'Ada'])
  })
}

// A revocation may take two seconds of real time. These tests run one after the other and before the rest, because the load of
// other tests could use up that time.
test.serial('a revocation has the parameters of RFC 7009 section 2.1 and is repeated after status 503', async t => {
  const { idp, expect } = setUp(t)
  const seen = [expect('/revoke', 503), expect('/revoke', 200)]
  await idp.revokeRefreshToken('the-refresh-token')
  for (const [request] of seen) t.is(request?.body, 'token=the-refresh-token&token_type_hint=refresh_token')
})

test.serial(
  'a revocation is repeated if its connection ends before the response, but not after other failures',
  async t => {
    const { idp, scope, expect } = setUp(t)
    for (const code of ['ECONNRESET', 'EPIPE']) {
      for (let cut = 0; cut < 2; cut++) scope.post('/revoke').replyWithError(Object.assign(new Error('x'), { code }))
      expect('/revoke', 200)
      await idp.revokeRefreshToken('the-refresh-token')
    }
    scope.post('/revoke').replyWithError(Object.assign(new Error('x'), { code: 'CERT_HAS_EXPIRED' }))
    await t.throwsAsync(idp.revokeRefreshToken('the-refresh-token'), { message: /CERT_HAS_EXPIRED/ })
    t.true(scope.isDone())
  }
)

test.serial('a revocation that fails three times or is rejected throws an error that contains no secret', async t => {
  const { idp, expect } = setUp(t)
  for (let attempt = 1; attempt <= 3; attempt++) expect('/revoke', 503)
  const busy = await t.throwsAsync(idp.revokeRefreshToken('the-refresh-token'), { instanceOf: ProviderError })
  t.like(busy, { endpoint: 'revocation', status: 503 })
  expect('/revoke', 401, { error: 'invalid_client' })
  const refused = await t.throwsAsync(idp.revokeRefreshToken('the-refresh-token'), { instanceOf: OAuthError })
  t.like(refused, { endpoint: 'revocation', error: 'invalid_client' })
  expect('/revoke', 500)
  const broken = await t.throwsAsync(idp.revokeRefreshToken('the-refresh-token'), { instanceOf: ProviderError })
  for (const error of [busy, refused, broken]) holdsNone(t, error, secrets)
})

test.serial('a revocation takes at most two seconds, including its repetitions', async t => {
  const { idp, expect, scope } = setUp(t)
  expect('/revoke', 503)
  scope.post('/revoke').delay(30_000).reply(200)
  t.teardown(abortPendingRequests)
  const started = performance.now()
  const error = await t.throwsAsync(idp.revokeRefreshToken('the-refresh-token'), { instanceOf: ProviderError })
  t.is(error?.problem, 'timeout')
  // This bound leaves time for three pauses of a slow machine. Without the limit of two seconds the call would take thirty.
  t.true(performance.now() - started < 10_000)
})

test('whether a session keeps an ID token for the logout does not wait for discovery', async t => {
  t.timeout(30_000)
  const { origin: issuer, scope } = mockHost(t)
  const { idp } = setUp(t, { ...discovered({ issuer }), tokenEndpoint: `${issuer}/t`, timeout: 60 })
  const [gate, open] = createDeferred()
  const document = { issuer, authorization_endpoint: `${issuer}/a`, token_endpoint: `${issuer}/t` }
  scope.get('/.well-known/openid-configuration').reply(200, async () => {
    await gate
    return document
  })
  t.true(await idp.takesLogoutHint('an ID token'))
  t.false(await idp.takesLogoutHint('x'.repeat(2000)))
  open()
  await idp.metadata()
  t.false(await idp.takesLogoutHint('an ID token'), 'this provider has no end-session endpoint')
})

test('the authorization URL keeps the query of the endpoint (RFC 6749 section 3.1), and has no nonce without openid', async t => {
  const { idp } = setUp(t, { authorizationEndpoint: 'https://idp.example/authorize?p=b2c_1%20a' })
  const request = { scope: 'a', state: 's', nonce: 'n', codeChallenge: 'c' }
  const { searchParams } = new URL(await idp.authorizationUrl(request))
  t.deepEqual([searchParams.get('p'), searchParams.get('client_id')], ['b2c_1 a', clientId])
  t.false(searchParams.has('nonce'))
})

test('members of the JWK Set that are no objects are ignored, and anything but a list of keys is an error', async t => {
  const issuer = 'https://idp.example'
  const document = { issuer, jwks_uri: `${issuer}/jwks` }
  const { platform } = testConfig(unreachableIdp)
  const key = { kty: 'EC', kid: 'a' }
  const bodies = [{ keys: [null, 'x', 1, key] }, { keys: key }, [key]]
  const transport = answering(responseWith(200, document), ...bodies.map(json => responseWith(200, json)))
  const idp = createIdentityProvider({ ...platform, issuer }, transport)
  t.deepEqual(await idp.signingKeys(), { keys: [key] })
  for (let call = 0; call < 2; call++) await t.throwsAsync(idp.signingKeys(), { message: /is not a JWK Set/ })
})

for (const [what, failed] of [
  ...[301, 307, 404, 405, 410].map(status => [`answers ${status}`, responseWith(status)] as const),
  ['cannot be reached', new ProviderError('token', 'unreachable', 'connection failed')],
  ['does not answer', new ProviderError('token', 'timeout', 'no complete response in time')]
] as const) {
  test(`if the token endpoint ${what}, the next request goes to the endpoint that the discovery document names then`, async t => {
    const issuer = 'https://idp.example'
    const documentOf = (path: string) =>
      responseWith(200, { issuer, authorization_endpoint: `${issuer}/a`, token_endpoint: `${issuer}${path}` })
    let now = 1_700_000_000_000
    const transport = answering(documentOf('/old'), failed, documentOf('/new'), responseWith(200, tokens))
    const { platform } = testConfig(unreachableIdp)
    const discovering = { ...platform, issuer, authorizationEndpoint: undefined, tokenEndpoint: undefined }
    const idp = createIdentityProvider(discovering, transport, () => now)
    await idp.endpoint('tokenEndpoint')
    now += 60_000
    await t.throwsAsync(idp.refreshTokenGrant(refreshGrant))
    await new Promise(setImmediate)
    await idp.refreshTokenGrant(refreshGrant)
    t.deepEqual(
      transport.requests.map(({ endpoint, url }) => `${endpoint} ${new URL(url).pathname}`),
      ['discovery', 'token /old', 'discovery', 'token /new'].map(line =>
        line === 'discovery' ? 'discovery /.well-known/openid-configuration' : line
      )
    )
  })
}
