import test, { type ExecutionContext } from 'ava'
import { type ClockReading, checkClock, checkEndpoints, checkOutbound, openProvider } from '#src/cli/check/provider.js'
import { defaultCallbackUrl, type TestSettings, testConfig } from '../../helpers/config.js'
import { faults, type HostileIdp, type IdpRequest } from '../../helpers/hostile-idp/index.js'
import {
  areFindings,
  checkAt,
  isFinding,
  type Situation,
  someProvider,
  testFindings,
  usedEndpoints
} from './checked.js'

/** Returns the findings for these settings. Without an issuer no request is sent. */
async function configured(t: ExecutionContext, platform: NonNullable<TestSettings['platform']>) {
  const provider = openProvider(testConfig(someProvider, { platform }), Date.now)
  t.teardown(() => provider.transport.close())
  return checkEndpoints(provider)
}

test('check reports that the built-in endpoints are used, and fails for endpoints of two different providers', async t => {
  const none = { authorizationEndpoint: undefined, tokenEndpoint: undefined, userinfoEndpoint: undefined }
  areFindings(t, await configured(t, none), ['ok Autodesk'])
  areFindings(t, await configured(t, { tokenEndpoint: undefined, userinfoEndpoint: undefined }), [
    'failed platform.authorizationEndpoint Autodesk platform.tokenEndpoint platform.userinfoEndpoint → platform.issuer'
  ])
})

const discovery = () => ({})

testFindings('endpoints', {
  'endpoints in the settings': [{}, 'ok settings'],
  'an endpoint that is in the settings and not in the discovery document': [
    {
      discovery: () => ({ userinfo_endpoint: undefined }),
      env: idp => ({ PLATFORM_USERINFO_ENDPOINT: idp.userinfoEndpoint })
    },
    'ok discovery ISSUER'
  ]
})

test('check warns about an endpoint in the settings that differs from the discovered one', async t => {
  const { allOf, idp } = await checkAt(t, {
    discovery,
    env: idp => ({
      PLATFORM_TOKEN_ENDPOINT: `${idp.issuer}/token?v=2`,
      PLATFORM_USERINFO_ENDPOINT: idp.userinfoEndpoint
    })
  })
  areFindings(t, allOf('endpoints'), [
    'ok discovery',
    `warning platform.tokenEndpoint ${idp.issuer}/token?v=2 ${idp.tokenEndpoint} → platform.tokenEndpoint`
  ])
})

const unusable: Readonly<Record<string, readonly [situation: Situation, finding: string]>> = {
  'a document with another issuer': [
    { discovery: () => ({ issuer: 'https://other.example' }) },
    'failed "https://other.example" "ISSUER" → platform.issuer'
  ],
  'a document without a token endpoint': [
    { discovery: () => ({ token_endpoint: undefined }) },
    'failed token_endpoint → platform.issuer'
  ],
  'no document': [
    { prepare: idp => Object.assign(idp, { discovery: undefined }) },
    'failed 404 ISSUER/.well-known/openid-configuration → platform.issuer'
  ],
  'an HTML page instead of the document': [
    { prepare: idp => idp.fail('discovery', faults.html(200)) },
    'failed unusable JSON → platform.issuer'
  ],
  'a closed port': [
    { env: () => ({ PLATFORM_ISSUER: 'http://127.0.0.1:1' }) },
    'failed 127.0.0.1:1 ECONNREFUSED → platform.issuer firewall'
  ]
}

for (const [what, [situation, expected]] of Object.entries(unusable)) {
  test(`if check cannot find the endpoints, it sends no further request to the provider (${what})`, async t => {
    const { found, idp, code } = await checkAt(t, { discovery, ...situation })
    isFinding(t, found('endpoints'), expected.replace('ISSUER', idp.issuer))
    for (const other of ['login', 'client', 'userinfo', 'logout']) t.is(found(other), undefined)
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
  const findings = async () => checkOutbound(provider, await provider.idp.metadata())
  areFindings(t, await findings(), [
    'ok https://a.example http://***@proxy.corp:3128',
    'ok https://b.example no proxy NO_PROXY'
  ])
  process.env = { HTTPS_PROXY: 'socks5://proxy.corp:1080' }
  t.is((await findings())[0]?.status, 'failed')
  process.env = {}
  t.deepEqual(await findings(), [])
})

/** Refuses a client that does not send its secret in the body. */
function unlessBody({ form }: IdpRequest, error: string, status: number) {
  return form.client_secret === undefined ? faults.error(error, status) : undefined
}

const compareClient = 'platform.clientId platform.clientSecret'
const wrongClient = (code: string) => `failed client wrong ${code} → ${compareClient} private_key_jwt`
const otherMethod = (right: string, set: string) =>
  `failed right only with ${right} setting is ${set} → platform.clientAuthMethod ${right}`

testFindings('client', {
  'a wrong secret at Keycloak': [
    { prepare: idp => idp.failWhen('token', () => faults.error('unauthorized_client', 401)) },
    wrongClient('401 unauthorized_client')
  ],
  'a client that must authenticate in the body': [
    { prepare: idp => idp.failWhen('token', request => unlessBody(request, 'invalid_client', 401)) },
    otherMethod('client_secret_post', 'client_secret_basic')
  ],
  'a client that must authenticate in the body, at a provider that calls this an invalid request': [
    { prepare: idp => idp.failWhen('token', request => unlessBody(request, 'invalid_request', 400)) },
    otherMethod('client_secret_post', 'client_secret_basic')
  ],
  'a client that must authenticate in the header': [
    {
      env: () => ({ PLATFORM_CLIENT_AUTH_METHOD: 'client_secret_post' }),
      prepare: idp =>
        idp.failWhen('token', ({ form }) => (form.client_secret ? faults.error('invalid_client', 401) : undefined))
    },
    otherMethod('client_secret_basic', 'client_secret_post')
  ],
  'a client id that the gateway does not know': [
    { prepare: idp => idp.failWhen('token', () => faults.gateway('AUTH-003', 403)) },
    wrongClient('403 invalid_client')
  ],
  'an HTML page with status 401': [
    { prepare: idp => idp.fail('token', faults.html(401)) },
    `failed rejects 401 no reason → ${compareClient} blocks machine`
  ],
  'a client that may not use the grant': [
    { prepare: idp => idp.fail('token', faults.error('unauthorized_client')) },
    'failed exchange 400 unauthorized_client → web application grant'
  ],
  'another registered error': [
    { prepare: idp => idp.failWhen('token', () => faults.error('invalid_request')) },
    'warning 400 invalid_request may wrong → invalid_request'
  ],
  'an endpoint that gives tokens for any code': [
    { prepare: idp => idp.fail('token', faults.answer({ status: 200, body: { access_token: 'a', expires_in: 1 } })) },
    'failed tokens made-up code → not'
  ],
  'an HTML page instead of tokens': [
    { prepare: idp => idp.fail('token', faults.html(200)) },
    'failed unusable JSON → platform.tokenEndpoint'
  ],
  'an address without an endpoint': [
    { env: idp => ({ PLATFORM_TOKEN_ENDPOINT: `${idp.issuer}/nothing?here` }) },
    'failed 404 ISSUER/nothing. → platform.tokenEndpoint'
  ],
  'a redirect': [
    { prepare: idp => idp.fail('token', faults.redirect('https://elsewhere.example/')) },
    'failed 302 redirects → platform.tokenEndpoint'
  ],
  'too many requests': [{ prepare: idp => idp.fail('token', faults.tooManyRequests()) }, 'warning 429 → minute'],
  'a provider that responds with 503': [
    { prepare: idp => idp.fail('token', faults.status(503)) },
    'failed 503 fault of the provider → later'
  ],
  'a 400 without an error code': [
    { prepare: idp => idp.fail('token', faults.empty(400)) },
    'failed 400 unexpected → platform.tokenEndpoint'
  ]
})

test('check names AUTH-001 wherever the platform responds with it', async t => {
  const prepare = (idp: HostileIdp) => {
    for (const endpoint of usedEndpoints) idp.failWhen(endpoint, () => faults.gateway('AUTH-001', 403))
  }
  const { found } = await checkAt(t, { prepare })
  for (const [check, name] of Object.entries({
    login: 'authorization',
    client: 'token',
    userinfo: 'user info',
    logout: 'revocation'
  }))
    isFinding(t, found(check), `failed ${name} AUTH-001 no access → platform.clientId`)
})

test('check warns about each endpoint of the discovery document that is off', async t => {
  const { allOf, code } = await checkAt(t, {
    discovery: () => ({
      userinfo_endpoint: 'http://idp.example/userinfo',
      revocation_endpoint: null,
      end_session_endpoint: 1,
      jwks_uri: ''
    }),
    args: ['--scopes', 'openid'],
    env: () => ({ PLATFORM_AUTH_LOGOUT_REVOKE: 'false' })
  })
  areFindings(t, allOf('endpoints').slice(1), [
    'warning off userinfo_endpoint plain http unencrypted → platform.userinfoEndpoint none',
    'warning off no revocation_endpoint → platform.revocationEndpoint none',
    'warning off end_session_endpoint not string → platform.endSessionEndpoint none',
    'warning off no jwks_uri → Back-channel'
  ])
  t.is(code, 0)
})

test('check sends one made-up code, with the parameters of a real code exchange', async t => {
  const { idp } = await checkAt(t)
  t.is(idp.tokenRequests.length, 1)
  t.like(idp.tokenRequests[0]?.form, { grant_type: 'authorization_code', redirect_uri: defaultCallbackUrl })
  t.regex(idp.tokenRequests[0]?.form.code_verifier ?? '', /^[\w-]{43}$/)
})

test('check prints neither a secret nor text from the provider', async t => {
  for (const text of ['<script>alert(1)</script>', '\u001b[31mred', 'eyJhbGciOiJSUzI1NiJ9.secret']) {
    const quoting = faults.answer({ status: 400, body: { error: text, error_description: text, userMessage: text } })
    const prepare = (idp: HostileIdp) => {
      for (const endpoint of usedEndpoints) idp.failWhen(endpoint, () => quoting)
    }
    const { output, idp, found } = await checkAt(t, { prepare })
    isFinding(t, found('client'), 'failed 400 unexpected')
    for (const hidden of [text, idp.clientSecret, 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU']) t.false(output.includes(hidden))
  }
})

const without = () => ({ userinfo_endpoint: undefined })

testFindings('userinfo', {
  'a gateway that rejects a made-up token': [
    { prepare: idp => idp.fail('userinfo', faults.gateway('AUTH-006', 403)) },
    'ok rejects 403'
  ],
  'an address that accepts any token': [
    { prepare: idp => idp.fail('userinfo', faults.answer({ status: 200, body: { name: 'Everybody' } })) },
    'failed accepted made-up token → platform.userinfoEndpoint'
  ],
  'names that come from the ID token': [
    { discovery: without, args: ['--scopes', 'openid data:read'] },
    'ok no endpoint ID token'
  ],
  'a provider without names': [
    { discovery: without, args: ['--scopes', 'data:read'] },
    'warning no ID token /api/auth/profile empty → openid'
  ],
  'an access list at a provider without names': [
    {
      discovery: without,
      args: ['--scopes', 'data:read'],
      env: () => ({ PLATFORM_AUTH_ACCESS_ALLOW: '@team.example' })
    },
    'failed no ID token access.allow → openid email'
  ]
})

/** The reading of a clock that is ahead by this many seconds. The Date header has whole seconds. */
function reading(aheadSeconds: number, endpoint: ClockReading['endpoint'] = 'token'): ClockReading {
  const sentAt = 1_800_000_000_300
  return { endpoint, date: 1_800_000_000_000 - aheadSeconds * 1000, sentAt, receivedAt: sentAt + 400 }
}

const clocks: readonly (readonly [aheadSeconds: number, finding: string])[] = [
  [0, 'ok agrees'],
  [1, 'ok agrees'],
  [-30, 'ok 30 s behind'],
  [60, 'ok 60 s ahead'],
  [61, 'warning 61 s ahead'],
  [-300, 'warning 5 min behind'],
  [-301, 'failed 5 min behind'],
  [7200, 'failed 120 min ahead']
]

for (const [aheadSeconds, expected] of clocks) {
  test(`a clock that is ${aheadSeconds} s ahead gives the finding ${expected}`, t => {
    areFindings(t, checkClock([reading(aheadSeconds)]), [expected])
  })
}

test('the time of the token endpoint is used first, because other responses may come from a cache', t => {
  areFindings(t, checkClock([reading(3600, 'discovery'), reading(0)]), ['ok agrees'])
})

test('check reports no clock finding if the provider sends no Date header', t => {
  t.deepEqual(checkClock([]), [])
})

testFindings('clock', {
  // On a slow machine the response arrives later, so that less than ten minutes are left.
  'the Date header of an error response': [
    {
      prepare: idp => {
        const date = new Date(Date.now() + 600_000).toUTCString()
        idp.fail('token', faults.answer({ status: 400, headers: { date }, body: { error: 'invalid_grant' } }))
      }
    },
    'failed min behind → NTP container host'
  ]
})
