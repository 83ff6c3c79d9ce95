/**
 * This server with the session in cookies, as docs/redis-and-replicas.md recommends: one process needs no Redis, and several
 * processes share one. All other settings are defaults.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { LOGIN_PATH } from '../../candidates/common.js'
import { CALLBACK_URL, CLIENT_ID } from '../../settings.js'
import { API_PATH } from '../paths.js'
import { nodeBytes, REFRESH_SECONDS } from './common.js'

const BIN = fileURLToPath(new URL('../../../bin/platform-auth-server.js', import.meta.url))
const PACKAGE = new URL('../../../package.json', import.meta.url)

const reasons = [
  'If a process is killed while it refreshes a session, the new refresh token may be lost. Another process then sends the old one. Without Redis, several processes cannot coordinate at all ([accepted losses](../SECURITY.md#logins-that-can-be-lost)).'
]

/** @type {import('./common.js').Compared[]} */
export const programs = [
  { ...ours('platform-auth-server', 'this server, single mode', { PLATFORM_SCOPES: 'openid data:read' }), reasons },
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
    redis: 'always',
    store: 'Redis, with an encrypted id in the cookie'
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
    store: 'encrypted cookies; several processes coordinate through Redis',
    design: isDual
      ? 'As in single mode, with two token requests for a refresh, because each session has a second access token for pages.'
      : 'One process at a time refreshes a session, under a lease that outlives the token request. The newest tokens stay in Redis, so an outdated cookie continues with them. A request that would wait too long gets 503 with Retry-After and keeps its session.',
    sources: ['redis-and-replicas.md'],
    executableBytes: nodeBytes,
    extras: '–',
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
        PLATFORM_AUTH_PROXY_ROUTES: `GET ${API_PATH} ${apiUrl}`,
        ...(redisUrl && { REDIS_URL: redisUrl }),
        ...env
      }
    })
  }
}
