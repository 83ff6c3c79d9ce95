/**
 * This server with the session in cookies, as docs/run/redis.md recommends: one process needs no Redis, and several
 * processes share one. All other settings are defaults.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { LOGIN_PATH } from '../../candidates/common.js'
import { CALLBACK_URL, CLIENT_ID } from '../../settings.js'
import { API_PATH } from '../paths.js'
import { REFRESH_SECONDS } from './common.js'

const BIN = fileURLToPath(new URL('../../../bin/platform-auth-server.js', import.meta.url))
const PACKAGE = new URL('../../../package.json', import.meta.url)

const about =
  'One process at a time refreshes a session, under a lease of 65 s, and gives up on a token request after 60 s. The newest tokens stay in Redis, so a request with an outdated cookie uses them. A request that would wait too long gets 503 with `Retry-After`, and keeps its session. A login is lost if the process that refreshes it is killed, or is stopped for longer than the lease, or if the provider responds too late: the next refresh then sends the old refresh token. Without Redis, several processes cannot coordinate at all ([accepted losses](../SECURITY.md#logins-that-can-be-lost)). Dual mode sends two token requests for a refresh, because each session has a second access token for pages. Sessions are in encrypted cookies. With `session.store: redis`, they are in Redis, and each process remembers those of the last minute.'

/** @type {import('./common.js').Compared[]} */
export const programs = [
  { ...ours('platform-auth-server', 'this server, single mode', { PLATFORM_SCOPES: 'openid data:read' }), about },
  ours('platform-auth-server-dual', 'this server, dual mode', {
    PLATFORM_AUTH_MODE: 'dual',
    INTERNAL_TOKEN_SCOPES: 'openid data:read viewables:read',
    PUBLIC_TOKEN_SCOPES: 'viewables:read'
  }),
  {
    ...ours('platform-auth-server-stored', 'this server, `session.store: redis`', {
      PLATFORM_SCOPES: 'openid data:read',
      PLATFORM_AUTH_SESSION_STORE: 'redis'
    }),
    redis: 'always'
  }
]

function ours(name, title, env) {
  const isDual = 'PLATFORM_AUTH_MODE' in env
  return {
    name,
    title,
    lifetimeSeconds: REFRESH_SECONDS,
    loginPath: LOGIN_PATH,
    path: API_PATH,
    maxProcesses: 2,
    redis: 'two processes',
    tokenRequests: isDual ? 2 : 1,
    sources: ['redis-and-replicas.md'],
    version: () => JSON.parse(readFileSync(PACKAGE, 'utf8')).version,
    describe: ({ port, folder }, { secret, providerUrl, apiUrl, redisUrl }) => ({
      command: process.execPath,
      // The folder has no settings file and no `.env` that could have an effect.
      args: [BIN, '--wwwroot', folder],
      cwd: folder,
      env: {
        NODE_ENV: 'production',
        PORT: String(port),
        PLATFORM_AUTH_HOST: '127.0.0.1',
        SERVER_SESSION_SECRET: secret,
        PLATFORM_CLIENT_ID: CLIENT_ID,
        PLATFORM_CLIENT_SECRET: secret,
        PLATFORM_CALLBACK_URL: CALLBACK_URL,
        PLATFORM_ISSUER: providerUrl,
        PLATFORM_AUTH_API_PROXY_RULES: `GET ${API_PATH} ${apiUrl}`,
        ...(redisUrl && { REDIS_URL: redisUrl }),
        ...env
      }
    })
  }
}
