/**
 * wonderwall in standalone mode, in which it refreshes tokens for requests to the upstream, with sessions in Redis:
 * https://github.com/nais/wonderwall/blob/1e1066a/docs/sessions.md
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { caches, unmeasurable } from '../../program.js'
import { API_PATH, CLIENT_ID } from '../../settings.js'
import { ORIGIN, REFRESH_SECONDS } from './common.js'

const COMMIT = '1e1066a'
const executable = join(caches, `wonderwall-${COMMIT}`, 'wonderwall')

/** @type {import('./common.js').Compared[]} */
export const programs = [
  {
    name: 'wonderwall',
    title: 'wonderwall',
    // It refreshes tokens that live for at most two minutes after half of their lifetime.
    lifetimeSeconds: 2 * REFRESH_SECONDS,
    loginPath: '/oauth2/login',
    path: API_PATH,
    redis: 'always',
    install: () => unmeasurable ?? (existsSync(executable) ? undefined : 'it has not been built; see bench/README.md'),
    version: () => COMMIT,
    describe: ({ port }, { secret, providerUrl, apiUrl, redisUrl }) => ({
      command: executable,
      args: [
        `--bind-address=127.0.0.1:${port}`,
        '--metrics-bind-address=',
        `--ingress=${ORIGIN}`,
        '--cookie.secure=false',
        `--openid.client-id=${CLIENT_ID}`,
        `--openid.well-known-url=${providerUrl}/.well-known/openid-configuration`,
        '--openid.scopes=profile,email,offline_access',
        `--upstream-host=${new URL(apiUrl).host}`,
        `--redis.uri=${redisUrl}`,
        '--ratelimit.enabled=false',
        '--log-level=warn'
      ],
      env: {
        WONDERWALL_OPENID_CLIENT_SECRET: secret,
        WONDERWALL_ENCRYPTION_KEY: createHash('sha256').update(secret).digest('base64')
      }
    })
  }
]
