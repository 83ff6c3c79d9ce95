/**
 * wonderwall in standalone mode, in which it refreshes tokens for requests to the upstream, with sessions in Redis:
 * https://github.com/nais/wonderwall/blob/1e1066a/docs/sessions.md
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { caches, unmeasurable } from '../../candidates/program.js'
import { CLIENT_ID } from '../../settings.js'
import { API_PATH } from '../paths.js'
import { ORIGIN, REFRESH_SECONDS } from './common.js'

const COMMIT = '1e1066a'
const REPOSITORY = `https://github.com/nais/wonderwall/blob/${COMMIT}`
const SOURCE = `${REPOSITORY}/pkg/session/session_manager.go`
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
    maxProcesses: 2,
    redis: 'always',
    about: `One process at a time refreshes a session, under a lock in Redis that lasts [10 s](${SOURCE}#L25). Other requests wait for up to [15 s](${SOURCE}#L24). If the wait fails, or the refresh fails but is not refused, the session is [kept](${SOURCE}#L137-L145). A refresh is given up after [10 s](${REPOSITORY}/pkg/openid/client/client.go#L65), and [cancelled](${SOURCE}#L213) if the browser cuts the connection of its request, although the provider may have used the refresh token. The next request then sends it again. If a process is killed while the provider responds to it, the other process sends the old refresh token when the lock has ended. The sessions are in Redis only, so a Redis that restarts empty ends all of them.`,
    sources: [`${REPOSITORY}/docs/sessions.md`],
    extras: 'one executable without a runtime, single sign-on for several applications, and front-channel logout',
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
