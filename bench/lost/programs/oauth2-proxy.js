/**
 * oauth2-proxy with --cookie-refresh a couple of seconds below the lifetime of the access token. Only its Redis store locks a
 * session while it is refreshed. The default is the cookie store:
 * https://oauth2-proxy.github.io/oauth2-proxy/configuration/session_storage
 */
import { createHash } from 'node:crypto'
import { executable, install, VERSION } from '../../candidates/oauth2-proxy.js'
import { CLIENT_ID } from '../../settings.js'
import { API_PATH } from '../paths.js'
import { ORIGIN, REFRESH_SECONDS } from './common.js'

const SECONDS_BEFORE_EXPIRY = 2
const REDIS = 'https://github.com/redis/go-redis/blob/v9.18.0'
const SOURCE = `https://github.com/oauth2-proxy/oauth2-proxy/blob/${VERSION}/pkg/middleware/stored_session.go`

/** @type {import('./common.js').Compared[]} */
export const programs = [
  {
    ...oauth2Proxy('oauth2-proxy', redisUrl => ['--session-store-type=redis', `--redis-connection-url=${redisUrl}`]),
    name: 'oauth2-proxy',
    redis: 'always',
    extras:
      'documents and files behind a login, one executable without a runtime, and the groups and roles of many providers',
    about: `One process at a time refreshes a session, under a lock in Redis that lasts [2 s](${SOURCE}#L28). Other requests wait for up to [5 s](${SOURCE}#L22). With a slower provider, or a process that was killed or stopped while it refreshed, the next request then sends the same refresh token. An \`invalid_grant\` [clears the session](${SOURCE}#L219-L232). After any other kind of failure, the session is kept until its access token has [expired](${SOURCE}#L289), which in this test is 2 s after the refresh is due. A shorter \`--cookie-refresh\` gives the session more time. A request that gets no lock within 5 s removes the session ([\`timeout obtaining session lock\`](${SOURCE}#L168)), and so does any error of Redis ([\`removing session\`](${SOURCE}#L122)), even if Redis keeps its data. The Redis client repeats a failed connection for [about half a second](${REDIS}/options.go#L332-L337) and a command up to [three times](${REDIS}/options.go#L384-L388), but it does neither after as many failed connections in a row as its [pool](${REDIS}/internal/pool/pool.go#L559) has, 10 for each core. So an outage of a second signs out many users on a busy site. We expect fewer on a quiet one (not measured). If the browser cuts the connection of the request that refreshes, the refresh is [cancelled](${SOURCE}#L251), but the provider may have used the refresh token. The [cookie store](https://oauth2-proxy.github.io/oauth2-proxy/configuration/session_storage), its default, has no lock.`,
    sources: ['https://oauth2-proxy.github.io/oauth2-proxy/configuration/session_storage']
  },
  {
    ...oauth2Proxy('oauth2-proxy, cookie store', () => []),
    name: 'oauth2-proxy-cookie',
    isVariant: true,
    redis: 'never'
  }
]

/**
 * @param {string} title
 * @param {(redisUrl: string | undefined) => string[]} store returns the flags of the session store
 * @returns {Omit<import('./common.js').Compared, 'name' | 'redis'>}
 */
function oauth2Proxy(title, store) {
  return {
    title,
    lifetimeSeconds: REFRESH_SECONDS + SECONDS_BEFORE_EXPIRY,
    loginPath: `/oauth2/start?rd=${encodeURIComponent('/oauth2/auth')}`,
    path: API_PATH,
    maxProcesses: 2,
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
        ...store(redisUrl),
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
