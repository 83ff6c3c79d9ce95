// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import test from 'ava'
import { describeProblem } from '#src/config/errors.js'
import { keysAndSourcesOf, linesOf, load, problemsOf } from './given.js'

const dual = { PLATFORM_AUTH_MODE: 'dual' }

const hubs = 'GET /api/hubs/** https://api.example/hubs/**'
const noUserInfo = { PLATFORM_AUTH_ACCESS_ALLOW: '@a.example', PLATFORM_USERINFO_ENDPOINT: 'none' }

const backchannel = { PLATFORM_BACKCHANNEL_LOGOUT: 'true', PLATFORM_ISSUER: 'https://idp.example' }
const problems: readonly (readonly [env: Readonly<Record<string, string>>, problem: string])[] = [
  [
    { PLATFORM_AUTH_SESSION_STORE: 'redis' },
    'session.store (variable PLATFORM_AUTH_SESSION_STORE) is redis, but redis.url is not set. Set redis.url, for example to redis://localhost:6379, or set session.store to cookie.'
  ],
  [
    { PLATFORM_AUTH_LOGOUT_IDP: 'true', PLATFORM_END_SESSION_ENDPOINT: 'none' },
    'logout.idp (variable PLATFORM_AUTH_LOGOUT_IDP) is on, but platform.endSessionEndpoint is none. Set logout.idp to false.'
  ],
  [
    { PLATFORM_AUTH_METRICS_ADDRESS: '127.0.0.1:8080' },
    'metrics.address (variable PLATFORM_AUTH_METRICS_ADDRESS) has the port 8080, which the server itself already uses. Set a different port.'
  ],
  [
    {
      PLATFORM_AUTH_METRICS_ADDRESS: ':9000',
      PLATFORM_AUTH_FORWARD_AUTH_ADDRESS: '127.0.0.1:9000',
      REDIS_URL: 'redis://localhost'
    },
    'metrics.address (variable PLATFORM_AUTH_METRICS_ADDRESS) has the port 9000, which forward-auth already uses. Set a different port.'
  ],
  [
    { PLATFORM_AUTH_API_PROXY_RULES: `${hubs} token=public` },
    `apiProxy.rules (variable PLATFORM_AUTH_API_PROXY_RULES) cannot contain the rule "${hubs} token=public", because it uses the public token, but mode is single. Use token=internal.`
  ],
  [
    noUserInfo,
    'access.allow (variable PLATFORM_AUTH_ACCESS_ALLOW) is set, but platform.userinfoEndpoint is none and platform.scopes does not contain openid, so the server cannot learn who a user is. Add openid and email to platform.scopes, or set platform.userinfoEndpoint.'
  ],
  [
    { ...noUserInfo, ...dual },
    'access.allow (variable PLATFORM_AUTH_ACCESS_ALLOW) is set, but platform.userinfoEndpoint is none and platform.internalTokenScopes does not contain openid, so the server cannot learn who a user is. Add openid and email to platform.internalTokenScopes, or set platform.userinfoEndpoint.'
  ],
  [
    { ...dual, INTERNAL_TOKEN_SCOPES: 'data:read', PUBLIC_TOKEN_SCOPES: 'data:read viewables:read' },
    'platform.publicTokenScopes (variable PUBLIC_TOKEN_SCOPES) contains viewables:read, which the internal token lacks. Use only scopes of platform.internalTokenScopes (data:read).'
  ],
  [
    { ...dual, INTERNAL_TOKEN_SCOPES: 'data:read' },
    'platform.publicTokenScopes (default) contains viewables:read, which the internal token lacks. Use only scopes of platform.internalTokenScopes (data:read).'
  ],
  [
    { ...backchannel, PLATFORM_SCOPES: 'a' },
    'platform.backchannelLogout (variable PLATFORM_BACKCHANNEL_LOGOUT) is on, but platform.scopes does not contain openid, so the server does not know to whom a session belongs. Add openid to platform.scopes.'
  ],
  [
    { ...backchannel, ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b' },
    'platform.backchannelLogout (variable PLATFORM_BACKCHANNEL_LOGOUT) is on, but platform.internalTokenScopes does not contain openid, so the server does not know to whom a session belongs. Add openid to platform.internalTokenScopes.'
  ],
  [
    { PLATFORM_BACKCHANNEL_LOGOUT: 'true', PLATFORM_SCOPES: 'openid a' },
    'platform.backchannelLogout (variable PLATFORM_BACKCHANNEL_LOGOUT) is on without platform.issuer, but the server needs the issuer to find the keys of the provider, with which it checks logout tokens. Set platform.issuer.'
  ]
]

for (const [env, problem] of problems) {
  test(`${JSON.stringify(env)} is refused with a reason and advice`, async t => {
    t.deepEqual((await problemsOf(t, { env })).map(describeProblem), [problem])
  })
}

const warnings: readonly (readonly [env: Readonly<Record<string, string | undefined>>, ...warnings: string[]])[] = [
  [
    { INTERNAL_TOKEN_SCOPES: 'a', PUBLIC_TOKEN_SCOPES: 'b' },
    'platform.internalTokenScopes has no effect, because mode is single.',
    'platform.publicTokenScopes has no effect, because mode is single.'
  ],
  [{ ...dual, PLATFORM_SCOPES: 'a' }, 'platform.scopes has no effect, because mode is dual.'],
  [
    { PLATFORM_REVOCATION_ENDPOINT: 'none', PLATFORM_AUTH_LOGOUT_REVOKE: 'true' },
    'logout.revoke has no effect, because platform.revocationEndpoint is none.'
  ],
  [
    { ...noUserInfo, PLATFORM_SCOPES: 'openid' },
    'access.allow reads the e-mail address from the ID token, but platform.scopes does not contain email. If the ID token contains no e-mail address, no user can sign in.'
  ],
  [
    { ...noUserInfo, ...dual, INTERNAL_TOKEN_SCOPES: 'openid a', PUBLIC_TOKEN_SCOPES: 'a' },
    'access.allow reads the e-mail address from the ID token, but platform.internalTokenScopes does not contain email. If the ID token contains no e-mail address, no user can sign in.'
  ],
  [
    { PLATFORM_AUTH_FORWARD_AUTH_ADDRESS: '127.0.0.1:9000' },
    "forwardAuth.address is set without redis.url. A session that was refreshed through a gateway then exists only in this process's memory until its browser requests a path below /api/auth. If the server restarts before this request, the user is signed out."
  ],
  [
    { PLATFORM_AUTH_SHUTDOWN_GRACE: '5' },
    'shutdown.grace is 5, but a refresh may take 10 seconds (one call of up to platform.timeout). If a shutdown interrupts a refresh, that user must sign in again.'
  ],
  [
    { PLATFORM_CALLBACK_URL: 'http://app.example/api/auth/callback', PLATFORM_AUTH_API_PROXY_RULES: hubs },
    'platform.callbackUrl uses plain http on another machine, so others on the network can read codes and cookies, and browsers reject __Host- cookies. Use https.',
    'apiProxy.rules is used over plain http, where browsers do not send the headers that tell which site a request comes from. Use https, or set apiProxy.csrfHeader.'
  ],
  [
    { PLATFORM_CALLBACK_URL: 'http://app.example.com/api/auth/callback' },
    'platform.callbackUrl uses plain http on another machine, so others on the network can read codes and cookies, and browsers reject __Host- cookies. Use https.'
  ],
  [
    { ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b a' },
    'platform.publicTokenScopes has the same scopes as platform.internalTokenScopes, so pages have the same access as the server.'
  ],
  [{ ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b' }],
  [{ ...dual, PLATFORM_AUTH_API_PROXY_RULES: `${hubs} token=public` }],
  ...['http://localhost', 'http://127.0.0.1:80', 'http://[::1]', 'http://app.localhost', 'https://app.example'].map(
    origin => [{ PLATFORM_CALLBACK_URL: `${origin}/api/auth/callback`, PLATFORM_AUTH_API_PROXY_RULES: hubs }] as const
  ),
  [{ PLATFORM_REVOCATION_ENDPOINT: 'none' }],
  [{ ...noUserInfo, PLATFORM_SCOPES: 'openid email' }],
  [{ PLATFORM_AUTH_SESSION_STORE: 'redis', REDIS_URL: 'redis://localhost:6379' }],
  [{ PLATFORM_AUTH_METRICS_ADDRESS: '127.0.0.1:8080', PLATFORM_AUTH_HOST: '10.0.0.1' }],
  [{ PLATFORM_AUTH_METRICS_ADDRESS: '127.0.0.1:0', PORT: '0' }],
  [
    { PLATFORM_AUTH_ACCESS_ALLOW: undefined },
    'access.allow is not set, so every account of the identity provider may sign in. Set it to e-mail addresses, domains or claims, or to "*" to allow every account.'
  ]
]

for (const [env, ...expected] of warnings) {
  test(`${JSON.stringify(env)} is accepted with ${expected.length} warnings`, async t => {
    t.deepEqual(linesOf((await load(t, { env })).warnings), expected)
  })
}

test('a grace period shorter than a refresh may take gets a warning', async t => {
  const warned = async (env: Record<string, string>) => keysAndSourcesOf((await load(t, { env })).warnings)
  const ofVariable = ['shutdown.grace (variable PLATFORM_AUTH_SHUTDOWN_GRACE)']
  const ofDefault = ['shutdown.grace (default)']
  for (const [env, expected] of [
    [{ PLATFORM_AUTH_SHUTDOWN_GRACE: '10' }, []],
    [{ PLATFORM_AUTH_SHUTDOWN_GRACE: '9' }, ofVariable],
    [{ PLATFORM_TIMEOUT: '25' }, []],
    [{ PLATFORM_TIMEOUT: '26' }, ofDefault],
    [dual, []],
    [{ ...dual, PLATFORM_AUTH_SHUTDOWN_GRACE: '20' }, []],
    [{ ...dual, PLATFORM_AUTH_SHUTDOWN_GRACE: '19' }, ofVariable],
    [{ ...dual, PLATFORM_TIMEOUT: '12' }, []],
    [{ ...dual, PLATFORM_TIMEOUT: '13' }, ofDefault]
  ] as const) {
    t.deepEqual(await warned(env), expected, JSON.stringify(env))
  }
  const [warning] = (await load(t, { env: { ...dual, PLATFORM_TIMEOUT: '30' } })).warnings
  t.regex(warning?.message ?? '', /^is 25, but a refresh may take 60 seconds \(two calls of up to platform\.timeout\)/)
})

test('back-channel logout is accepted with an issuer and the scope openid', async t => {
  const { config } = await load(t, { env: { ...backchannel, PLATFORM_SCOPES: 'openid a' } })
  t.true(config.platform.backchannelLogout)
})
