// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import test from 'ava'
import { accepts, refuses } from './given.js'

type Env = Readonly<Record<string, string | undefined>>

const dual = { PLATFORM_AUTH_MODE: 'dual' }
const hubs = 'GET /api/hubs/** https://api.example/hubs/**'
const noUserInfo = { PLATFORM_AUTH_ACCESS_ALLOW: '@a.example', PLATFORM_USERINFO_ENDPOINT: 'none' }
const backchannel = { PLATFORM_BACKCHANNEL_LOGOUT: 'true', PLATFORM_ISSUER: 'https://idp.example' }

const problems: readonly (readonly [env: Env, problem: string])[] = [
  [
    { PLATFORM_AUTH_SESSION_STORE: 'redis' },
    'session.store PLATFORM_AUTH_SESSION_STORE redis.url redis://localhost:6379 cookie'
  ],
  [
    { PLATFORM_AUTH_LOGOUT_IDP: 'true', PLATFORM_END_SESSION_ENDPOINT: 'none' },
    'logout.idp PLATFORM_AUTH_LOGOUT_IDP platform.endSessionEndpoint none false'
  ],
  [
    { PLATFORM_AUTH_METRICS_ADDRESS: '127.0.0.1:8080' },
    'metrics.address PLATFORM_AUTH_METRICS_ADDRESS 8080 server itself different'
  ],
  [
    {
      PLATFORM_AUTH_METRICS_ADDRESS: ':9000',
      PLATFORM_AUTH_FORWARD_AUTH_ADDRESS: '127.0.0.1:9000',
      REDIS_URL: 'redis://localhost'
    },
    'metrics.address PLATFORM_AUTH_METRICS_ADDRESS 9000 forward-auth different'
  ],
  [
    { PLATFORM_AUTH_API_PROXY_RULES: `${hubs} token=public` },
    `apiProxy.rules PLATFORM_AUTH_API_PROXY_RULES "${hubs} token=public" public single token=internal`
  ],
  [
    noUserInfo,
    'access.allow PLATFORM_AUTH_ACCESS_ALLOW platform.userinfoEndpoint none platform.scopes openid email who a user is'
  ],
  [{ ...noUserInfo, PLATFORM_AUTH_ACCESS_ALLOW: 'groups=admins', PLATFORM_SCOPES: 'a' }, 'access.allow openid'],
  [
    { ...noUserInfo, ...dual },
    'access.allow PLATFORM_AUTH_ACCESS_ALLOW platform.userinfoEndpoint none platform.internalTokenScopes openid email'
  ],
  [
    { ...dual, INTERNAL_TOKEN_SCOPES: 'data:read', PUBLIC_TOKEN_SCOPES: 'data:read viewables:read' },
    'platform.publicTokenScopes PUBLIC_TOKEN_SCOPES viewables:read platform.internalTokenScopes (data:read)'
  ],
  [
    { ...dual, INTERNAL_TOKEN_SCOPES: 'data:read' },
    'platform.publicTokenScopes (default) viewables:read platform.internalTokenScopes (data:read)'
  ],
  [
    { ...backchannel, PLATFORM_SCOPES: 'a' },
    'platform.backchannelLogout PLATFORM_BACKCHANNEL_LOGOUT platform.scopes openid'
  ],
  [
    { ...backchannel, ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b' },
    'platform.backchannelLogout PLATFORM_BACKCHANNEL_LOGOUT platform.internalTokenScopes openid'
  ],
  [
    { PLATFORM_BACKCHANNEL_LOGOUT: 'true', PLATFORM_SCOPES: 'openid a' },
    'platform.backchannelLogout PLATFORM_BACKCHANNEL_LOGOUT platform.issuer keys logout tokens'
  ],
  [
    { PLATFORM_AUTH_ACCESS_ACR: 'mfa' },
    'access.acr PLATFORM_AUTH_ACCESS_ACR platform.scopes not contain openid no ID token'
  ],
  [
    { ...dual, PLATFORM_AUTHORIZATION_PARAMS: 'max_age=60' },
    'platform.authorizationParams PLATFORM_AUTHORIZATION_PARAMS max_age platform.internalTokenScopes not contain openid'
  ]
]

for (const [env, problem] of problems) {
  test(`${JSON.stringify(env)} is refused with a reason and advice`, t => refuses(t, { env }, problem))
}

const plainHttp = 'platform.callbackUrl plain http codes cookies https'

const warnings: readonly (readonly [env: Env, ...warnings: string[]])[] = [
  [
    { INTERNAL_TOKEN_SCOPES: 'a', PUBLIC_TOKEN_SCOPES: 'b' },
    'platform.internalTokenScopes no effect mode single',
    'platform.publicTokenScopes no effect mode single'
  ],
  [{ ...dual, PLATFORM_SCOPES: 'a' }, 'platform.scopes no effect mode dual'],
  [
    { PLATFORM_REVOCATION_ENDPOINT: 'none', PLATFORM_AUTH_LOGOUT_REVOKE: 'true' },
    'logout.revoke no effect platform.revocationEndpoint none'
  ],
  [{ ...noUserInfo, PLATFORM_SCOPES: 'openid' }, 'access.allow ID token platform.scopes not contain email'],
  [
    { ...noUserInfo, ...dual, INTERNAL_TOKEN_SCOPES: 'openid a', PUBLIC_TOKEN_SCOPES: 'a' },
    'access.allow ID token platform.internalTokenScopes not contain email'
  ],
  [
    { PLATFORM_AUTH_FORWARD_AUTH_ADDRESS: '127.0.0.1:9000' },
    'forwardAuth.address redis.url memory restarts signed out'
  ],
  [
    { PLATFORM_CALLBACK_URL: 'http://app.example/api/auth/callback', PLATFORM_AUTH_API_PROXY_RULES: hubs },
    plainHttp,
    'apiProxy.rules plain http headers apiProxy.csrfHeader'
  ],
  [
    {
      PLATFORM_CALLBACK_URL: 'http://app.example/api/auth/callback',
      PLATFORM_AUTH_API_PROXY_RULES: hubs,
      PLATFORM_AUTH_API_PROXY_CSRF_HEADER: 'X-CSRF'
    },
    plainHttp
  ],
  [
    { ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b a' },
    'platform.publicTokenScopes same platform.internalTokenScopes'
  ],
  [{ ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b' }],
  [{ ...dual, PLATFORM_AUTH_API_PROXY_RULES: `${hubs} token=public` }],
  ...['http://localhost', 'http://127.0.0.1:80', 'http://[::1]', 'http://app.localhost', 'https://app.example'].map(
    origin => [{ PLATFORM_CALLBACK_URL: `${origin}/api/auth/callback`, PLATFORM_AUTH_API_PROXY_RULES: hubs }] as const
  ),
  [{ PLATFORM_REVOCATION_ENDPOINT: 'none' }],
  [{ ...noUserInfo, PLATFORM_SCOPES: 'openid email' }],
  [{ ...noUserInfo, PLATFORM_AUTH_ACCESS_ALLOW: 'groups=admins', PLATFORM_SCOPES: 'openid a' }],
  [{ PLATFORM_AUTH_ACCESS_ALLOW: '@a.example', PLATFORM_SCOPES: 'a' }],
  [{ PLATFORM_USERINFO_ENDPOINT: 'none', PLATFORM_SCOPES: 'a' }],
  [{ ...backchannel, PLATFORM_SCOPES: 'openid a' }],
  [{ PLATFORM_AUTH_SESSION_STORE: 'redis', REDIS_URL: 'redis://localhost:6379' }],
  [{ PLATFORM_AUTH_METRICS_ADDRESS: '127.0.0.1:8080', PLATFORM_AUTH_HOST: '10.0.0.1' }],
  [{ PLATFORM_AUTH_METRICS_ADDRESS: '127.0.0.1:0', PORT: '0' }],
  [{ PLATFORM_AUTH_ACCESS_ACR: 'mfa', PLATFORM_AUTHORIZATION_PARAMS: 'acr_values=mfa', PLATFORM_SCOPES: 'openid' }],
  [{ PLATFORM_AUTHORIZATION_PARAMS: 'max_age=60', PLATFORM_SCOPES: 'openid' }],
  [
    { PLATFORM_AUTHORIZATION_PARAMS: 'acr_values=mfa', PLATFORM_SCOPES: 'openid' },
    'platform.authorizationParams acr_values access.acr user remove provider ignore'
  ],
  [{ PLATFORM_AUTH_ACCESS_ALLOW: undefined }, 'access.allow not set every account e-mail domains claims "*"'],
  // A shutdown waits for a refresh, which is one request in single mode and two in dual mode.
  [{ PLATFORM_AUTH_SHUTDOWN_GRACE: '10' }],
  [{ PLATFORM_AUTH_SHUTDOWN_GRACE: '9' }, 'shutdown.grace PLATFORM_AUTH_SHUTDOWN_GRACE 9 10 one platform.timeout'],
  [{ PLATFORM_TIMEOUT: '25' }],
  [{ PLATFORM_TIMEOUT: '26' }, 'shutdown.grace (default) 25 26 one platform.timeout'],
  [dual],
  [{ ...dual, PLATFORM_AUTH_SHUTDOWN_GRACE: '20' }],
  [{ ...dual, PLATFORM_AUTH_SHUTDOWN_GRACE: '19' }, 'shutdown.grace PLATFORM_AUTH_SHUTDOWN_GRACE 19 20 two'],
  [{ ...dual, PLATFORM_TIMEOUT: '12' }],
  [{ ...dual, PLATFORM_TIMEOUT: '13' }, 'shutdown.grace (default) 25 26 two']
]

for (const [env, ...expected] of warnings) {
  test(`${JSON.stringify(env)} is accepted with ${expected.length} warnings`, async t => {
    await accepts(t, { env }, ...expected)
  })
}
