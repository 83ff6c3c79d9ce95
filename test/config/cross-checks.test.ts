// The internal token has the wide scope and stays on the server. In dual mode pages also get a public token, which has
// only the public scopes. In single mode there is only one token, and it stays on the server.
import { testMessages } from './messages.js'

type Env = Readonly<Record<string, string | undefined>>

const dual = { PLATFORM_AUTH_MODE: 'dual' }
const hubs = 'GET /api/hubs/** https://api.example/hubs/**'
const noUserInfo = { PLATFORM_AUTH_ACCESS_ALLOW: '@a.example', PLATFORM_USERINFO_ENDPOINT: 'none' }
const backchannel = { PLATFORM_BACKCHANNEL_LOGOUT: 'true', PLATFORM_ISSUER: 'https://idp.example' }

const combinations: readonly Env[] = [
  { PLATFORM_AUTH_SESSION_STORE: 'redis' },
  { PLATFORM_AUTH_LOGOUT_IDP: 'true', PLATFORM_END_SESSION_ENDPOINT: 'none' },
  { PLATFORM_AUTH_METRICS_ADDRESS: '127.0.0.1:8080' },
  {
    PLATFORM_AUTH_METRICS_ADDRESS: ':9000',
    PLATFORM_AUTH_FORWARD_AUTH_ADDRESS: '127.0.0.1:9000',
    REDIS_URL: 'redis://localhost'
  },
  { PLATFORM_AUTH_API_PROXY_RULES: `${hubs} token=public` },
  noUserInfo,
  { ...noUserInfo, PLATFORM_AUTH_ACCESS_ALLOW: 'groups=admins', PLATFORM_SCOPES: 'a' },
  { ...noUserInfo, ...dual },
  { ...dual, INTERNAL_TOKEN_SCOPES: 'data:read', PUBLIC_TOKEN_SCOPES: 'data:read viewables:read' },
  { ...dual, INTERNAL_TOKEN_SCOPES: 'data:read' },
  { ...backchannel, PLATFORM_SCOPES: 'a' },
  { ...backchannel, ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b' },
  { PLATFORM_BACKCHANNEL_LOGOUT: 'true', PLATFORM_SCOPES: 'openid a' },
  { PLATFORM_AUTH_ACCESS_ACR: 'mfa' },
  { ...dual, PLATFORM_AUTHORIZATION_PARAMS: 'max_age=60' },
  { ...dual, PLATFORM_AUTHORIZATION_PARAMS: 'max_age=60&acr_values=mfa' },
  { INTERNAL_TOKEN_SCOPES: 'a', PUBLIC_TOKEN_SCOPES: 'b' },
  { ...dual, PLATFORM_SCOPES: 'a' },
  { PLATFORM_REVOCATION_ENDPOINT: 'none', PLATFORM_AUTH_LOGOUT_REVOKE: 'true' },
  { ...noUserInfo, PLATFORM_SCOPES: 'openid' },
  { ...noUserInfo, ...dual, INTERNAL_TOKEN_SCOPES: 'openid a', PUBLIC_TOKEN_SCOPES: 'a' },
  { PLATFORM_AUTH_FORWARD_AUTH_ADDRESS: '127.0.0.1:9000' },
  { PLATFORM_CALLBACK_URL: 'http://app.example/api/auth/callback', PLATFORM_AUTH_API_PROXY_RULES: hubs },
  {
    PLATFORM_CALLBACK_URL: 'http://app.example/api/auth/callback',
    PLATFORM_AUTH_API_PROXY_RULES: hubs,
    PLATFORM_AUTH_API_PROXY_CSRF_HEADER: 'X-CSRF'
  },
  { ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b a' },
  { ...dual, INTERNAL_TOKEN_SCOPES: 'a b', PUBLIC_TOKEN_SCOPES: 'b' },
  { ...dual, PLATFORM_AUTH_API_PROXY_RULES: `${hubs} token=public` },
  { PLATFORM_REVOCATION_ENDPOINT: 'none' },
  { ...noUserInfo, PLATFORM_SCOPES: 'openid email' },
  { ...noUserInfo, PLATFORM_AUTH_ACCESS_ALLOW: 'groups=admins', PLATFORM_SCOPES: 'openid a' },
  { PLATFORM_AUTH_ACCESS_ALLOW: '@a.example', PLATFORM_SCOPES: 'a' },
  { PLATFORM_USERINFO_ENDPOINT: 'none', PLATFORM_SCOPES: 'a' },
  { ...backchannel, PLATFORM_SCOPES: 'openid a' },
  { PLATFORM_AUTH_SESSION_STORE: 'redis', REDIS_URL: 'redis://localhost:6379' },
  { PLATFORM_AUTH_METRICS_ADDRESS: '127.0.0.1:8080', PLATFORM_AUTH_HOST: '10.0.0.1' },
  { PLATFORM_AUTH_METRICS_ADDRESS: '127.0.0.1:0', PORT: '0' },
  { PLATFORM_AUTH_ACCESS_ACR: 'mfa', PLATFORM_AUTHORIZATION_PARAMS: 'acr_values=mfa', PLATFORM_SCOPES: 'openid' },
  { PLATFORM_AUTHORIZATION_PARAMS: 'max_age=60', PLATFORM_SCOPES: 'openid' },
  { PLATFORM_AUTHORIZATION_PARAMS: 'acr_values=mfa', PLATFORM_SCOPES: 'openid' },
  { PLATFORM_AUTH_ACCESS_ALLOW: undefined },
  { PLATFORM_AUTH_SHUTDOWN_GRACE: '10' },
  { PLATFORM_AUTH_SHUTDOWN_GRACE: '9' },
  { PLATFORM_TIMEOUT: '25' },
  { PLATFORM_TIMEOUT: '26' },
  dual,
  { ...dual, PLATFORM_AUTH_SHUTDOWN_GRACE: '20' },
  { ...dual, PLATFORM_AUTH_SHUTDOWN_GRACE: '19' },
  { ...dual, PLATFORM_TIMEOUT: '12' },
  { ...dual, PLATFORM_TIMEOUT: '13' },
  ...['http://localhost', 'http://127.0.0.1:80', 'http://[::1]', 'http://app.localhost', 'https://app.example'].map(
    origin => ({ PLATFORM_CALLBACK_URL: `${origin}/api/auth/callback`, PLATFORM_AUTH_API_PROXY_RULES: hubs })
  )
]

testMessages('combinations', Object.fromEntries(combinations.map(env => [JSON.stringify(env), { env }])))
