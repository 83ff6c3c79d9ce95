/**
 * Apache with mod_auth_openidc. The sessions are in the memory that Apache's processes share, or in a Redis that several servers
 * share. OIDCRefreshAccessTokenBeforeExpiry refreshes the access token:
 * https://github.com/OpenIDC/mod_auth_openidc/blob/v2.4.20.2/auth_openidc.conf
 * Parallel refreshes: https://github.com/OpenIDC/mod_auth_openidc/wiki/Known-Limitations
 */
import { join } from 'node:path'
import { APACHE, install, loadModules, version } from '../../candidates/mod-auth-openidc.js'
import { CLIENT_ID } from '../../settings.js'
import { API_PATH } from '../paths.js'
import { ORIGIN, REFRESH_SECONDS } from './common.js'

const SECONDS_BEFORE_EXPIRY = 2
const MODULES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'proxy', 'proxy_http']

const sources = [
  'https://github.com/OpenIDC/mod_auth_openidc/wiki/Known-Limitations',
  'https://github.com/OpenIDC/mod_auth_openidc/blob/v2.4.20.2/auth_openidc.conf'
]

const REFRESH = 'https://github.com/OpenIDC/mod_auth_openidc/blob/v2.4.20.2/src/handle/refresh.c'
const about = `In each server, only one thread at a time refreshes a session, and the result of the refresh is kept for [30 s](${REFRESH}#L70). Other requests look for the result every 0.5 s, for up to [5 s](${REFRESH}#L197-L205). The lock then [ends](${REFRESH}#L62), and with a slower provider, a waiting request sends the [same refresh token](${REFRESH}#L220-L225). If its refresh fails, it looks for a result [once more](${REFRESH}#L291-L307), which does not help if the provider has ended the login. After a failed refresh, the server sends no other for [30 s](${REFRESH}#L308-L312). The lock between servers is a value in Redis that is read and then written, as a [best effort](${REFRESH}#L244-L252), so all requests of a user go to the same server as long as it is running. If a server is killed while the provider responds to it, the other server sends the old refresh token after at most 5 s. While Redis is down, there is no lock, so parallel requests send the same refresh token. Sessions in Redis are lost if it restarts empty, and sessions in shared memory with their server. With client-cookie, sessions are in encrypted cookies, and only the locks and the results of refreshes are in Redis or in the memory of each server.`

/** @type {import('./common.js').Compared[]} */
export const programs = [
  {
    ...apache('mod_auth_openidc, shared memory', () => 'OIDCCacheType shm'),
    name: 'mod-auth-openidc-shm',
    maxProcesses: 1,
    whyNotTwo: 'two servers do not share memory',
    redis: 'never',
    isVariant: true,
    about
  },
  {
    ...apache('mod_auth_openidc, Redis, sticky', redisCache),
    name: 'mod-auth-openidc-redis',
    isSticky: true,
    maxProcesses: 2,
    redis: 'always'
  },
  {
    ...apache(
      'mod_auth_openidc, client-cookie, sticky',
      redis => `OIDCSessionType client-cookie\n${redisCache(redis)}`
    ),
    name: 'mod-auth-openidc-client-cookie',
    isSticky: true,
    maxProcesses: 2,
    redis: 'always'
  },
  {
    ...apache(
      'mod_auth_openidc, client-cookie, no Redis, sticky',
      () => 'OIDCSessionType client-cookie\nOIDCCacheType shm'
    ),
    name: 'mod-auth-openidc-client-cookie-shm',
    isSticky: true,
    maxProcesses: 2,
    redis: 'never'
  },
  {
    ...apache('mod_auth_openidc, Redis, not sticky', redisCache),
    name: 'mod-auth-openidc-not-sticky',
    maxProcesses: 2,
    isVariant: true,
    redis: 'always'
  }
]

/** @param {URL} redis */
function redisCache({ hostname, port }) {
  return `OIDCCacheType redis\nOIDCRedisCacheServer ${hostname}:${port}`
}

/**
 * @param {string} title
 * @param {(redis: URL) => string} cache returns the directives of the cache
 * @returns {Omit<import('./common.js').Compared, 'name' | 'maxProcesses' | 'redis'>}
 */
function apache(title, cache) {
  return {
    title,
    lifetimeSeconds: REFRESH_SECONDS + SECONDS_BEFORE_EXPIRY,
    loginPath: API_PATH,
    // `apachectl graceful-stop`, which the official image of Apache uses, too.
    stopSignal: 'SIGWINCH',
    path: API_PATH,
    sources,
    extras:
      'documents and files behind a login, all of Apache, such as its authorization rules, an OAuth 2.0 resource server, and several providers',
    install,
    version,
    describe: ({ folder, port }, { secret, providerUrl, apiUrl, redisUrl }) => ({
      command: APACHE,
      args: ['-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')],
      files: {
        'apache.conf': `
${loadModules(MODULES)}
Listen 127.0.0.1:${port}
ServerName localhost
# Apache changes to this user if root starts it. Otherwise it ignores these two lines.
User www-data
Group www-data
ServerRoot ${folder}
DefaultRuntimeDir ${folder}
Mutex file:${folder} default
PidFile apache.pid
ErrorLog error.log
KeepAliveTimeout 75
MaxKeepAliveRequests 0
# A request that waits for a refresh keeps its thread. There are enough threads for all requests of all users.
ThreadsPerChild 64
ServerLimit 25
MaxRequestWorkers 1600
OIDCProviderMetadataURL ${providerUrl}/.well-known/openid-configuration
OIDCClientID ${CLIENT_ID}
OIDCClientSecret ${secret}
OIDCRedirectURI ${ORIGIN}/callback
OIDCCryptoPassphrase ${secret}
OIDCScope "openid profile email offline_access"
${cache(redisUrl && new URL(redisUrl))}
<Location />
  AuthType openid-connect
  Require valid-user
  OIDCRefreshAccessTokenBeforeExpiry ${SECONDS_BEFORE_EXPIRY}
</Location>
ProxyPass ${API_PATH} ${apiUrl}
`
      }
    })
  }
}
