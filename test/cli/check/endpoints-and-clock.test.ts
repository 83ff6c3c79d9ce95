import test, { type ExecutionContext } from 'ava'
import {
  type ClockReading,
  checkClock,
  checkEndpoints,
  checkOutbound,
  openProvider
} from '#src/cli/check/endpoints-and-clock.js'
import { defaultCallbackUrl, type TestSettings, testConfig } from '../../helpers/config.js'
import { faults, type HostileIdp, type IdpRequest } from '../../helpers/hostile-idp/index.js'
import { checkAt, isGolden, type Situation, someProvider, testFindings, usedEndpoints } from './checked.js'

/** Returns the findings for these settings. Without an issuer no request is sent. */
async function configured(t: ExecutionContext, platform: NonNullable<TestSettings['platform']>) {
  const provider = openProvider(testConfig(someProvider, { platform }), Date.now)
  t.teardown(() => provider.transport.close())
  return checkEndpoints(provider)
}

test('endpoints: the built-in ones, and those of two different providers', async t => {
  const none = { authorizationEndpoint: undefined, tokenEndpoint: undefined, userinfoEndpoint: undefined }
  isGolden(t, [
    ...(await configured(t, none)),
    ...(await configured(t, { tokenEndpoint: undefined, userinfoEndpoint: undefined }))
  ])
})

const discovery = () => ({})

testFindings('endpoints', {
  'endpoints in the settings': {},
  'an endpoint that is in the settings and not in the discovery document': {
    discovery: () => ({ userinfo_endpoint: undefined }),
    env: idp => ({ PLATFORM_USERINFO_ENDPOINT: idp.userinfoEndpoint })
  }
})

testFindings('endpoints', {
  'endpoints of the discovery document that are off': {
    discovery: () => ({
      userinfo_endpoint: 'http://idp.example/userinfo',
      revocation_endpoint: null,
      end_session_endpoint: 1,
      jwks_uri: ''
    }),
    args: ['--scopes', 'openid'],
    env: () => ({ PLATFORM_AUTH_LOGOUT_REVOKE: 'false' })
  }
})

// Azure AD B2C has its documents below the policies, not below the issuer.
test('endpoints: all in the settings, at an issuer without a document', async t => {
  const { allOf, code } = await checkAt(t, {
    prepare: idp => Object.assign(idp, { discovery: undefined }),
    env: idp => ({
      PLATFORM_ISSUER: idp.issuer,
      PLATFORM_USERINFO_ENDPOINT: 'none',
      PLATFORM_REVOCATION_ENDPOINT: 'none'
    }),
    args: ['--scopes', 'openid offline_access']
  })
  isGolden(t, ['endpoints', 'login', 'client', 'userinfo', 'refresh', 'logout'].flatMap(allOf))
  t.is(code, 0)
})

const unusable: Readonly<Record<string, Situation>> = {
  'a document with another issuer': { discovery: () => ({ issuer: 'https://other.example' }) },
  'a document without a token endpoint': { discovery: () => ({ token_endpoint: undefined }) },
  'no document': { prepare: idp => Object.assign(idp, { discovery: undefined }) },
  'an HTML page instead of the document': { prepare: idp => idp.fail('discovery', faults.html(200)) },
  'a closed port': { env: () => ({ PLATFORM_ISSUER: 'http://127.0.0.1:1' }) }
}

for (const [what, situation] of Object.entries(unusable)) {
  test(`endpoints: ${what}, so check sends no further request to the provider`, async t => {
    const { allOf, idp, code } = await checkAt(t, { discovery, ...situation })
    isGolden(t, ['endpoints', 'login', 'client', 'userinfo', 'logout'].flatMap(allOf))
    t.is(idp.tokenRequests.length, 0)
    t.is(code, 1)
  })
}

test.serial('check shows the HTTP proxy for each provider URL, and the URLs that are called directly', async t => {
  const before = { ...process.env }
  t.teardown(() => {
    process.env = before
  })
  process.env = { HTTPS_PROXY: 'http://user:hunter2@proxy.corp:3128', NO_PROXY: 'b.example' }
  const config = testConfig(someProvider, { platform: { userinfoEndpoint: 'https://b.example/userinfo' } })
  const provider = openProvider(config, Date.now)
  t.teardown(() => provider.transport.close())
  const findings = async () => [...checkOutbound(provider, await provider.idp.metadata())]
  const proxied = await findings()
  process.env = { HTTPS_PROXY: 'socks5://proxy.corp:1080' }
  const unusable = await findings()
  process.env = {}
  isGolden(t, [...proxied, ...unusable, ...(await findings())])
})

/** Refuses a client that does not send its secret in the body. */
function unlessBody({ form }: IdpRequest, error: string, status: number) {
  return form.client_secret === undefined ? faults.error(error, status) : undefined
}

testFindings('client', {
  'a wrong secret at Keycloak': {
    prepare: idp => idp.failWhen('token', () => faults.error('unauthorized_client', 401))
  },
  'a client that must authenticate in the body': {
    prepare: idp => idp.failWhen('token', request => unlessBody(request, 'invalid_client', 401))
  },
  'a client that must authenticate in the body, at a provider that calls this an invalid request': {
    prepare: idp => idp.failWhen('token', request => unlessBody(request, 'invalid_request', 400))
  },
  'a client that must authenticate in the header': {
    env: () => ({ PLATFORM_CLIENT_AUTH_METHOD: 'client_secret_post' }),
    prepare: idp =>
      idp.failWhen('token', ({ form }) => (form.client_secret ? faults.error('invalid_client', 401) : undefined))
  },
  'a provider that does not support PKCE, and calls it an invalid client': {
    prepare: idp =>
      idp.failWhen('token', ({ form }) => (form.code_verifier ? faults.error('invalid_client', 401) : undefined))
  },
  'a client id that the gateway does not know': {
    prepare: idp => idp.failWhen('token', () => faults.gateway('AUTH-003', 403))
  },
  'an HTML page with status 401': { prepare: idp => idp.fail('token', faults.html(401)) },
  'a client that may not use the grant': { prepare: idp => idp.fail('token', faults.error('unauthorized_client')) },
  'another registered error': { prepare: idp => idp.failWhen('token', () => faults.error('invalid_request')) },
  'an endpoint that gives tokens for any code': {
    prepare: idp => idp.fail('token', faults.answer({ status: 200, body: { access_token: 'a', expires_in: 1 } }))
  },
  'an HTML page instead of tokens': { prepare: idp => idp.fail('token', faults.html(200)) },
  'an address without an endpoint': { env: idp => ({ PLATFORM_TOKEN_ENDPOINT: `${idp.issuer}/nothing?here` }) },
  'a redirect': { prepare: idp => idp.fail('token', faults.redirect('https://elsewhere.example/')) },
  'too many requests': { prepare: idp => idp.fail('token', faults.tooManyRequests()) },
  'a provider that responds with 503': { prepare: idp => idp.fail('token', faults.status(503)) },
  'a 400 without an error code': { prepare: idp => idp.fail('token', faults.empty(400)) }
})

test('check names AUTH-001 wherever the platform responds with it', async t => {
  const prepare = (idp: HostileIdp) => {
    for (const endpoint of usedEndpoints) idp.failWhen(endpoint, () => faults.gateway('AUTH-001', 403))
  }
  const { allOf } = await checkAt(t, { prepare })
  isGolden(t, ['login', 'client', 'userinfo', 'logout'].flatMap(allOf))
})

test('check sends one made-up code, with the parameters of a real code exchange', async t => {
  const { idp } = await checkAt(t)
  t.is(idp.tokenRequests.length, 1)
  t.like(idp.tokenRequests[0]?.form, { grant_type: 'authorization_code', redirect_uri: defaultCallbackUrl })
  t.regex(idp.tokenRequests[0]?.form.code_verifier ?? '', /^[\w-]{43}$/)
})

const without = () => ({ userinfo_endpoint: undefined })

testFindings('userinfo', {
  'a gateway that rejects a made-up token': { prepare: idp => idp.fail('userinfo', faults.gateway('AUTH-006', 403)) },
  'an address that accepts any token': {
    prepare: idp => idp.fail('userinfo', faults.answer({ status: 200, body: { name: 'Everybody' } }))
  },
  'names that come from the ID token': { discovery: without, args: ['--scopes', 'openid data:read'] },
  'a provider without names': { discovery: without, args: ['--scopes', 'data:read'] },
  'an access list at a provider without names': {
    discovery: without,
    args: ['--scopes', 'data:read'],
    env: () => ({ PLATFORM_AUTH_ACCESS_ALLOW: '@team.example' })
  }
})

/** The reading of a clock that is ahead by this many seconds. The Date header has whole seconds. */
function reading(aheadSeconds: number, endpoint: ClockReading['endpoint'] = 'token'): ClockReading {
  const sentAt = 1_800_000_000_300
  return { endpoint, date: 1_800_000_000_000 - aheadSeconds * 1000, sentAt, receivedAt: sentAt + 400 }
}

test('clock: differences', t => {
  const lines = [0, 1, -30, 60, 61, -300, -301, 7200].flatMap(seconds =>
    [...checkClock([reading(seconds)])].map(({ status, message }) => `${seconds}: ${status} ${message}`)
  )
  isGolden(t, lines)
  t.deepEqual([...checkClock([])], [], 'the provider sends no Date header')
})

test('the time of the token endpoint is used first, because other responses may come from a cache', t => {
  t.deepEqual([...checkClock([reading(3600, 'discovery'), reading(0)])], [...checkClock([reading(0)])])
})

test('check reads the clock of the provider in the Date header of an error response', async t => {
  const prepare = (idp: HostileIdp) => {
    const date = new Date(Date.now() + 600_000).toUTCString()
    idp.fail('token', faults.answer({ status: 400, headers: { date }, body: { error: 'invalid_grant' } }))
  }
  // On a slow machine the response arrives later, so that less than ten minutes are left.
  t.regex((await checkAt(t, { prepare })).allOf('clock')[0] ?? '', /^failed clock .* min behind the provider's/)
})
