/**
 * This server with the session in cookies, as docs/run/redis.md recommends: one process needs no Redis, and several
 * processes share one. All other settings are defaults.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { API_PATH, CALLBACK_URL, CLIENT_ID, LOGIN_PATH } from '../../settings.js'
import { REFRESH_SECONDS } from './common.js'

const BIN = fileURLToPath(new URL('../../../bin/platform-auth-server.js', import.meta.url))
const PACKAGE = new URL('../../../package.json', import.meta.url)

/** @type {import('./common.js').Compared[]} */
export const programs = [
  ours('platform-auth-server', 'this server, single mode', { PLATFORM_SCOPES: 'openid data:read' }),
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
  return {
    name,
    title,
    lifetimeSeconds: REFRESH_SECONDS,
    loginPath: LOGIN_PATH,
    path: API_PATH,
    redis: 'two processes',
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
