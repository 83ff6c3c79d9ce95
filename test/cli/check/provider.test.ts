import test, { type ExecutionContext } from 'ava'
import { type ClockReading, checkClock, checkEndpoints, checkOutbound, openProvider } from '#src/cli/check/provider.js'
import { type TestSettings, testConfig } from '../../helpers/config.js'
import { faults, type HostileIdp, type IdpRequest } from '../../helpers/hostile-idp/index.js'
import { checkAt, type Situation, someProvider } from './checked.js'

test('check reports that the endpoints come from the settings', async t => {
  t.is((await checkAt(t)).line('endpoints'), 'ok endpoints The endpoints come from the settings.')
})

/** Returns the findings for these settings. Without an issuer no request is sent. */
async function configured(t: ExecutionContext, platform: NonNullable<TestSettings['platform']>) {
  const provider = openProvider(testConfig(someProvider, { platform }), Date.now)
  t.teardown(() => provider.transport.close())
  return checkEndpoints(provider)
}

test('check reports that the built-in endpoints are used', async t => {
  const none = { authorizationEndpoint: undefined, tokenEndpoint: undefined, userinfoEndpoint: undefined }
  t.deepEqual(await configured(t, none), [
    { status: 'ok', message: 'The endpoints are those of Autodesk Platform Services.' }
  ])
})

test('check fails for endpoints of two different providers', async t => {
  t.deepEqual(await configured(t, { tokenEndpoint: undefined, userinfoEndpoint: undefined }), [
    {
      status: 'failed',
      message:
        'The settings contain platform.authorizationEndpoint, but Autodesk Platform Services is still used for platform.tokenEndpoint, platform.userinfoEndpoint.',
      next: 'Set all three endpoints for one provider, or set platform.issuer.'
    }
  ])
})

test('check accepts a discovery document that contains all endpoints', async t => {
  const { line, idp, code } = await checkAt(t, { discovery: () => ({}) })
  t.is(line('endpoints'), `ok endpoints The discovery document of ${idp.issuer} contains the endpoints.`)
  t.regex(line('client') ?? '', /^ok /)
  t.is(code, 0)
})

test('check warns about an endpoint in the settings that differs from the discovered one', async t => {
  const { lines, idp } = await checkAt(t, {
    discovery: () => ({}),
    env: idp => ({
      PLATFORM_TOKEN_ENDPOINT: `${idp.issuer}/token?v=2`,
      PLATFORM_USERINFO_ENDPOINT: idp.userinfoEndpoint
    })
  })
  const about = lines.filter(line => line.includes(' endpoints '))
  t.deepEqual(about, [
    `ok endpoints The discovery document of ${idp.issuer} contains the endpoints.`,
    `warning endpoints platform.tokenEndpoint is ${idp.issuer}/token?v=2, but the discovery document has ${idp.tokenEndpoint}. Next: Remove platform.tokenEndpoint from the settings, unless the difference is intended.`
  ])
})

test('check accepts an endpoint in the settings that is missing from the discovery document', async t => {
  const { line, idp } = await checkAt(t, {
    discovery: () => ({ userinfo_endpoint: undefined }),
    env: idp => ({ PLATFORM_USERINFO_ENDPOINT: idp.userinfoEndpoint })
  })
  t.is(line('endpoints'), `ok endpoints The discovery document of ${idp.issuer} contains the endpoints.`)
})

const compareIssuer = "Next: Compare platform.issuer with the provider's documentation."

const unusable: Readonly<Record<string, readonly [situation: Situation, line: string]>> = {
  'a document with another issuer': [
    { discovery: () => ({ issuer: 'https://other.example' }) },
    `failed endpoints The discovery document is unusable: its issuer is "https://other.example", but "ISSUER" is configured. ${compareIssuer}`
  ],
  'a document without a token endpoint': [
    { discovery: () => ({ token_endpoint: undefined }) },
    `failed endpoints The discovery document is unusable: it has no token_endpoint. ${compareIssuer}`
  ],
  'no document': [
    {
      prepare: idp => {
        idp.discovery = undefined
      }
    },
    `failed endpoints The discovery document responds with 404, so there is no such endpoint at ISSUER/.well-known/openid-configuration. ${compareIssuer}`
  ],
  'an HTML page instead of the document': [
    { prepare: idp => idp.fail('discovery', faults.html(200)) },
    `failed endpoints The discovery document is unusable: the response is not a JSON object. ${compareIssuer}`
  ],
  'a closed port': [
    { env: () => ({ PLATFORM_ISSUER: 'http://127.0.0.1:1' }) },
    'failed endpoints The discovery document cannot be reached: 127.0.0.1:1 refuses connections (ECONNREFUSED). Next: Check host and port in platform.issuer. If they are right, no server listens there or a firewall rejects the connection.'
  ]
}

for (const [what, [situation, expected]] of Object.entries(unusable)) {
  test(`if check cannot find the endpoints, it sends no further request to the provider (${what})`, async t => {
    const { line, idp, code } = await checkAt(t, { discovery: () => ({}), ...situation })
    t.is(line('endpoints'), expected.replace('ISSUER', idp.issuer))
    for (const other of ['login', 'client', 'userinfo', 'logout']) t.is(line(other), undefined)
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
  t.deepEqual(await checkOutbound(provider, await provider.idp.metadata()), [
    {
      status: 'ok',
      message: 'Calls to https://a.example go through the proxy http://***@proxy.corp:3128 from the environment.'
    },
    { status: 'ok', message: 'Calls to https://b.example use no proxy (NO_PROXY).' }
  ])
  process.env = { HTTPS_PROXY: 'socks5://proxy.corp:1080' }
  const [wrong] = await checkOutbound(provider, await provider.idp.metadata())
  t.is(wrong?.status, 'failed')
  process.env = {}
  t.deepEqual(await checkOutbound(provider, await provider.idp.metadata()), [])
})

const noAccess =
  "this application has no access to the API product. Next: Compare platform.clientId with the application's page, and give the application access to the API there."

/** Refuses a client that does not send its secret in the body. */
function unlessBody({ form }: IdpRequest, error: string, status: number) {
  return form.client_secret === undefined ? faults.error(error, status) : undefined
}

const clientTable: Readonly<Record<string, readonly [situation: Situation, line: string]>> = {
  'a provider that rejects only the made-up code': [
    {},
    'ok client The client id and secret work. The token endpoint rejected only the made-up code (invalid_grant).'
  ],
  'a wrong secret': [
    { env: () => ({ PLATFORM_CLIENT_SECRET: 'not-the-secret' }) },
    "failed client The client id or secret is wrong. The token endpoint rejects the client (401 invalid_client). Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, the client may need private_key_jwt as platform.clientAuthMethod."
  ],
  'a wrong secret at Keycloak': [
    { prepare: idp => idp.failWhen('token', () => faults.error('unauthorized_client', 401)) },
    "failed client The client id or secret is wrong. The token endpoint rejects the client (401 unauthorized_client). Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, the client may need private_key_jwt as platform.clientAuthMethod."
  ],
  'a client that must authenticate in the body': [
    { prepare: idp => idp.failWhen('token', request => unlessBody(request, 'invalid_client', 401)) },
    'failed client The client id and secret are right, but the token endpoint accepts them only with client_secret_post, and the setting is client_secret_basic. Next: Set platform.clientAuthMethod to client_secret_post.'
  ],
  'a client that must authenticate in the body, at a provider that calls this an invalid request': [
    { prepare: idp => idp.failWhen('token', request => unlessBody(request, 'invalid_request', 400)) },
    'failed client The client id and secret are right, but the token endpoint accepts them only with client_secret_post, and the setting is client_secret_basic. Next: Set platform.clientAuthMethod to client_secret_post.'
  ],
  'a client that must authenticate in the header': [
    {
      env: () => ({ PLATFORM_CLIENT_AUTH_METHOD: 'client_secret_post' }),
      prepare: idp =>
        idp.failWhen('token', ({ form }) => (form.client_secret ? faults.error('invalid_client', 401) : undefined))
    },
    'failed client The client id and secret are right, but the token endpoint accepts them only with client_secret_basic, and the setting is client_secret_post. Next: Set platform.clientAuthMethod to client_secret_basic.'
  ],
  'an application without access to the API product': [
    { prepare: idp => idp.fail('token', faults.gateway('AUTH-001', 403)) },
    `failed client The token endpoint responds with AUTH-001: ${noAccess}`
  ],
  'a client id that the gateway does not know': [
    { prepare: idp => idp.failWhen('token', () => faults.gateway('AUTH-003', 403)) },
    "failed client The client id or secret is wrong. The token endpoint rejects the client (403 invalid_client). Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, the client may need private_key_jwt as platform.clientAuthMethod."
  ],
  'an HTML page with status 401': [
    { prepare: idp => idp.fail('token', faults.html(401)) },
    "failed client The token endpoint rejects this client (401) and gives no reason. Next: Compare platform.clientId and platform.clientSecret with the application's page. If they are right, ask the provider if it blocks this machine."
  ],
  'a client that may not use the grant': [
    { prepare: idp => idp.fail('token', faults.error('unauthorized_client')) },
    'failed client The token endpoint does not let this client exchange codes (400 unauthorized_client). Next: Register the application as a web application that may use the authorization code grant.'
  ],
  'another registered error': [
    { prepare: idp => idp.failWhen('token', () => faults.error('invalid_request')) },
    "warning client The token endpoint rejected a made-up code with an unusual error (400 invalid_request), so the secret may be wrong. Next: Sign in once. If that fails, look for invalid_request in the provider's documentation."
  ],
  'an endpoint that gives tokens for any code': [
    { prepare: idp => idp.fail('token', faults.answer({ status: 200, body: { access_token: 'a', expires_in: 1 } })) },
    "failed client The token endpoint gave tokens for a made-up code. Next: Do not use this provider. The URL may be wrong, so compare it with the provider's documentation."
  ],
  'an HTML page instead of tokens': [
    { prepare: idp => idp.fail('token', faults.html(200)) },
    "failed client The token endpoint is unusable: the response is not a JSON object. Next: Compare platform.tokenEndpoint with the provider's documentation."
  ],
  'an address without an endpoint': [
    { env: idp => ({ PLATFORM_TOKEN_ENDPOINT: `${idp.issuer}/nothing?here` }) },
    "failed client The token endpoint responds with 404, so there is no such endpoint at ISSUER/nothing. Next: Compare platform.tokenEndpoint with the provider's documentation."
  ],
  'a redirect': [
    { prepare: idp => idp.fail('token', faults.redirect('https://elsewhere.example/')) },
    "failed client The token endpoint responds with 302, but the server does not follow redirects. Next: Compare platform.tokenEndpoint with the provider's documentation."
  ],
  'too many requests': [
    { prepare: idp => idp.fail('token', faults.tooManyRequests()) },
    'warning client The token endpoint responds with 429, so it has received too many requests. Next: Check again in a minute.'
  ],
  'a provider that responds with 503': [
    { prepare: idp => idp.fail('token', faults.status(503)) },
    'failed client The token endpoint responds with 503, which is a fault of the provider. Next: Check again later. Ask the provider if the problem persists.'
  ],
  'a 400 without an error code': [
    { prepare: idp => idp.fail('token', faults.empty(400)) },
    "failed client The token endpoint responds with 400, which is an unexpected status. Next: Compare platform.tokenEndpoint with the provider's documentation."
  ]
}

for (const [what, [situation, expected]] of Object.entries(clientTable)) {
  test(`check reports the right client finding for ${what}`, async t => {
    const { line, idp, code } = await checkAt(t, situation)
    t.is(line('client'), expected.replace('ISSUER', idp.issuer))
    if (expected.startsWith('failed')) t.is(code, 1)
    else t.is(code, 0)
  })
}

test('check names AUTH-001 wherever the platform responds with it', async t => {
  const prepare = (idp: HostileIdp) => {
    for (const endpoint of ['authorize', 'token', 'userinfo', 'revoke'] as const)
      idp.failWhen(endpoint, () => faults.gateway('AUTH-001', 403))
  }
  const { line } = await checkAt(t, { prepare })
  for (const [check, name] of [
    ['login', 'authorization'],
    ['client', 'token'],
    ['userinfo', 'user info'],
    ['logout', 'revocation']
  ] as const)
    t.is(line(check), `failed ${check} The ${name} endpoint responds with AUTH-001: ${noAccess}`)
})

test('check warns about each endpoint of the discovery document that is off', async t => {
  const discovery = () => ({
    userinfo_endpoint: 'http://idp.example/userinfo',
    revocation_endpoint: null,
    end_session_endpoint: 1,
    jwks_uri: ''
  })
  const noLogout = () => ({ PLATFORM_AUTH_LOGOUT_REVOKE: 'false' })
  const { lines, code } = await checkAt(t, { discovery, args: ['--scopes', 'openid'], env: noLogout })
  const off = 'warning endpoints An endpoint of the discovery document is off: its'
  t.deepEqual(
    lines.filter(line => line.startsWith('warning endpoints')),
    [
      `${off} userinfo_endpoint cannot be used: plain http would send secrets over the network unencrypted. Next: Set platform.userinfoEndpoint to the right URL, or to none.`,
      `${off.replace(/its$/, 'it')} has no revocation_endpoint. Next: Set platform.revocationEndpoint to the right URL, or to none.`,
      `${off} end_session_endpoint is not a string. Next: Set platform.endSessionEndpoint to the right URL, or to none.`,
      `${off.replace(/its$/, 'it')} has no jwks_uri. Next: Ask the provider to correct it. Back-channel logout does not work without it.`
    ]
  )
  t.is(code, 0)
})

test('check sends one made-up code, with the parameters of a real code exchange', async t => {
  const { idp } = await checkAt(t)
  t.is(idp.tokenRequests.length, 1)
  t.like(idp.tokenRequests[0]?.form, {
    grant_type: 'authorization_code',
    redirect_uri: 'http://localhost:8080/api/auth/callback'
  })
  t.regex(idp.tokenRequests[0]?.form.code_verifier ?? '', /^[\w-]{43}$/)
})

test('check prints neither a secret nor text from the provider', async t => {
  const quoting = (text: string) =>
    faults.answer({ status: 400, body: { error: text, error_description: text, userMessage: text } })
  for (const text of ['<script>alert(1)</script>', '\u001b[31mred', 'eyJhbGciOiJSUzI1NiJ9.secret']) {
    const { output, idp, line } = await checkAt(t, {
      prepare: idp => {
        for (const endpoint of ['authorize', 'token', 'userinfo', 'revoke'] as const) {
          idp.failWhen(endpoint, () => quoting(text))
        }
      }
    })
    t.regex(line('client') ?? '', /^failed client The token endpoint responds with 400, which/)
    t.false(output.includes(text))
    for (const secret of [idp.clientSecret, 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU']) t.false(output.includes(secret))
  }
})

const compareUserInfo = "Next: Compare platform.userinfoEndpoint with the provider's documentation."

const userInfoTable: Readonly<Record<string, readonly [situation: Situation, line: string]>> = {
  'an endpoint that rejects a made-up token': [
    {},
    'ok userinfo The user info endpoint rejects a made-up token, as it should (401).'
  ],
  'a gateway that rejects a made-up token': [
    { prepare: idp => idp.fail('userinfo', faults.gateway('AUTH-006', 403)) },
    'ok userinfo The user info endpoint rejects a made-up token, as it should (403).'
  ],
  'an address that accepts any token': [
    { prepare: idp => idp.fail('userinfo', faults.answer({ status: 200, body: { name: 'Everybody' } })) },
    `failed userinfo The URL accepted a made-up token, so it is not a user info endpoint. ${compareUserInfo}`
  ],
  'an HTML page': [
    { prepare: idp => idp.fail('userinfo', faults.html()) },
    `failed userinfo The user info endpoint is unusable: the response is not a JSON object. ${compareUserInfo}`
  ],
  'an address without an endpoint': [
    { env: idp => ({ PLATFORM_USERINFO_ENDPOINT: `${idp.issuer}/nothing` }) },
    `failed userinfo The user info endpoint responds with 404, so there is no such endpoint at ISSUER/nothing. ${compareUserInfo}`
  ]
}

for (const [what, [situation, expected]] of Object.entries(userInfoTable)) {
  test(`check reports the right user info finding for ${what}`, async t => {
    const { line, idp } = await checkAt(t, situation)
    t.is(line('userinfo'), expected.replace('ISSUER', idp.issuer))
  })
}

test('without a user info endpoint check says that names come from the ID token, or that there are none', async t => {
  const discovery = () => ({ userinfo_endpoint: undefined })
  const asking = await checkAt(t, { discovery, args: ['--scopes', 'openid data:read'] })
  t.is(asking.line('userinfo'), 'ok userinfo There is no user info endpoint, so names come from the ID token.')
  const silent = await checkAt(t, { discovery, args: ['--scopes', 'data:read'] })
  t.is(
    silent.line('userinfo'),
    'warning userinfo There is no user info endpoint and no ID token, so /api/auth/profile returns an empty name. Next: Add openid to the scopes.'
  )
  const env = () => ({ PLATFORM_AUTH_ACCESS_ALLOW: '@team.example' })
  const guarded = await checkAt(t, { discovery, args: ['--scopes', 'data:read'], env })
  t.is(
    guarded.line('userinfo'),
    'failed userinfo There is no user info endpoint and no ID token, so access.allow cannot be checked and no user can sign in. Next: Add openid and email to the scopes.'
  )
  t.is(guarded.code, 1)
})

const setClock = 'Next: Let NTP set the clock (timedatectl set-ntp true). For a container, set the clock of its host.'

/** The reading of a clock that is ahead by this many seconds. The Date header has whole seconds. */
function reading(aheadSeconds: number, endpoint: ClockReading['endpoint'] = 'token'): ClockReading {
  const sentAt = 1_800_000_000_300
  return { endpoint, date: 1_800_000_000_000 - aheadSeconds * 1000, sentAt, receivedAt: sentAt + 400 }
}

const clockTable: readonly (readonly [aheadSeconds: number, status: string, message: string])[] = [
  [0, 'ok', "This machine's clock agrees with the provider's."],
  [1, 'ok', "This machine's clock agrees with the provider's."],
  [-30, 'ok', "This machine's clock is 30 s behind the provider's."],
  [60, 'ok', "This machine's clock is 60 s ahead of the provider's."],
  [61, 'warning', "This machine's clock is 61 s ahead of the provider's."],
  [-300, 'warning', "This machine's clock is 5 min behind the provider's."],
  [-301, 'failed', "This machine's clock is 5 min behind the provider's."],
  [7200, 'failed', "This machine's clock is 120 min ahead of the provider's."]
]

for (const [aheadSeconds, status, message] of clockTable) {
  test(`a clock that is ${aheadSeconds} s ahead gives the status ${status}`, t => {
    const [finding] = checkClock([reading(aheadSeconds)])
    t.is(finding?.status as string, status)
    t.is(finding?.message, message)
    t.is(finding?.next === undefined, status === 'ok')
  })
}

test('the time of the token endpoint is used first, because other responses may come from a cache', t => {
  const [finding] = checkClock([reading(3600, 'discovery'), reading(0)])
  t.is(finding?.status, 'ok')
})

test('check reports no clock finding if the provider sends no Date header', t => {
  t.deepEqual(checkClock([]), [])
})

test('check also reads the time from the Date header of an error response', async t => {
  const { line, code } = await checkAt(t, {
    prepare: idp => {
      const date = new Date(Date.now() + 600_000).toUTCString()
      idp.fail('token', faults.answer({ status: 400, headers: { date }, body: { error: 'invalid_grant' } }))
    }
  })
  // On a slow machine the response arrives later, so that less than ten minutes are left.
  const [message, next] = line('clock')?.split(' Next: ') ?? []
  t.regex(message ?? '', /^failed clock This machine's clock is \d+ min behind the provider's\.$/)
  t.is(`Next: ${next}`, setClock)
  t.is(code, 1)
})
