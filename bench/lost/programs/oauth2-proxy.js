/**
 * oauth2-proxy with --cookie-refresh a couple of seconds below the lifetime of the access token. Only its Redis store locks a
 * session while it is refreshed. The default is the cookie store:
 * https://oauth2-proxy.github.io/oauth2-proxy/configuration/session_storage
 */
import { createHash } from 'node:crypto'
import { executable, install, VERSION } from '../../candidates/oauth2-proxy.js'
import { API_PATH, CLIENT_ID } from '../../settings.js'
import { ORIGIN, REFRESH_SECONDS } from './common.js'

const SECONDS_BEFORE_EXPIRY = 2

/** @type {import('./common.js').Compared[]} */
export const programs = [
  oauth2Proxy('oauth2-proxy', 'oauth2-proxy', 'always'),
  oauth2Proxy('oauth2-proxy-cookie', 'oauth2-proxy, cookie store', 'never')
]

/** @returns {import('./common.js').Compared} */
function oauth2Proxy(name, title, redis) {
  return {
    name,
    title,
    redis,
    lifetimeSeconds: REFRESH_SECONDS + SECONDS_BEFORE_EXPIRY,
    loginPath: `/oauth2/start?rd=${encodeURIComponent('/oauth2/auth')}`,
    path: API_PATH,
    install,
    version: () => VERSION.slice(1),
    describe: ({ port }, { secret, providerUrl, apiUrl, redisUrl, lifetimeSeconds }) => ({
      command: executable,
      args: [
        `--http-address=127.0.0.1:${port}`,
        '--provider=oidc',
        `--oidc-issuer-url=${providerUrl}`,
        `--client-id=${CLIENT_ID}`,
        `--redirect-url=${ORIGIN}/oauth2/callback`,
        '--scope=openid profile email offline_access',
        `--upstream=${new URL(apiUrl).origin}/`,
        '--pass-access-token',
        '--email-domain=*',
        '--cookie-secure=false',
        `--cookie-refresh=${lifetimeSeconds - SECONDS_BEFORE_EXPIRY}s`,
        '--code-challenge-method=S256',
        ...(redisUrl ? ['--session-store-type=redis', `--redis-connection-url=${redisUrl}`] : []),
        '--skip-provider-button',
        '--request-logging=false'
      ],
      env: {
        OAUTH2_PROXY_CLIENT_SECRET: secret,
        OAUTH2_PROXY_COOKIE_SECRET: createHash('sha256').update(secret).digest('base64url')
      }
    })
  }
}
