/**
 * Apache with mod_auth_openidc. The sessions are in a Redis that several servers share, or in the cookie. OIDCRefreshAccessTokenBeforeExpiry refreshes the access token:
 * https://github.com/OpenIDC/mod_auth_openidc/blob/v2.4.20.2/auth_openidc.conf
 * Parallel refreshes: https://github.com/OpenIDC/mod_auth_openidc/wiki/Known-Limitations
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { caches, unmeasurable } from '../../program.js'
import { API_PATH, CLIENT_ID } from '../../settings.js'
import { ORIGIN, REFRESH_SECONDS } from './common.js'

// The paths of the Debian packages.
const APACHE = '/usr/sbin/apache2'
const MODULES_FOLDER = '/usr/lib/apache2/modules'
const MODULE = 'mod_auth_openidc.so'
const BUILT = 'mod_auth_openidc-'

const SECONDS_BEFORE_EXPIRY = 2
const MODULES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'proxy', 'proxy_http']

/** @type {import('./common.js').Compared[]} */
export const programs = [
  apache('mod-auth-openidc-redis', 'Redis', ''),
  apache('mod-auth-openidc-client-cookie', 'client-cookie', 'OIDCSessionType client-cookie')
]

/** @returns {import('./common.js').Compared} */
function apache(name, store, directives) {
  return {
    name,
    title: `mod_auth_openidc, ${store}, sticky`,
    redis: 'always',
    isSticky: true,
    lifetimeSeconds: REFRESH_SECONDS + SECONDS_BEFORE_EXPIRY,
    loginPath: API_PATH,
    // `apachectl graceful-stop`, which the official image of Apache uses, too.
    stopSignal: 'SIGWINCH',
    path: API_PATH,
    install,
    version,
    describe: (place, { secret, providerUrl, apiUrl, redisUrl }) =>
      describeApache(place, {
        secret,
        providerUrl,
        origin: ORIGIN,
        directives: `
OIDCScope "openid profile email offline_access"
OIDCCacheType redis
OIDCRedisCacheServer ${new URL(redisUrl).host}
${directives}
<Location />
  OIDCRefreshAccessTokenBeforeExpiry ${SECONDS_BEFORE_EXPIRY}
</Location>
ProxyPass ${API_PATH} ${apiUrl}`
      })
  }
}

/**
 * Describes an Apache in which every path needs a session.
 * @param {import('../../program.js').Place} place
 * @param {{ secret: string, providerUrl: string, origin: string, directives: string }} options `origin` is the public one
 * @returns {import('../../program.js').Program}
 */
export function describeApache({ folder, port }, { secret, providerUrl, origin, directives }) {
  return {
    command: APACHE,
    args: ['-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')],
    files: {
      'apache.conf': `
${MODULES.map(name => `LoadModule ${name}_module ${MODULES_FOLDER}/mod_${name}.so`).join('\n')}
LoadModule auth_openidc_module ${findModule().path}
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
OIDCRedirectURI ${origin}/callback
OIDCCryptoPassphrase ${secret}
<Location />
  AuthType openid-connect
  Require valid-user
</Location>
${directives}
`
    }
  }
}

/** @returns {string | undefined} the reason why it cannot be measured here */
export function install() {
  if (unmeasurable) return unmeasurable
  if (existsSync(APACHE) && existsSync(findModule().path)) return undefined
  return 'it is not installed. On Debian: `apt-get install apache2 libapache2-mod-auth-openidc`'
}

/**
 * Finds the module. A release that was built into the cache folder is preferred to the one of Debian, which is older. README.md
 * has the commands.
 */
function findModule() {
  const built = existsSync(caches) ? readdirSync(caches).filter(name => name.startsWith(BUILT)) : []
  const newest = built.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1)
  if (newest) return { path: join(caches, newest, MODULE), version: newest.slice(BUILT.length) }
  const { stdout } = spawnSync('dpkg', ['-s', 'libapache2-mod-auth-openidc'], { encoding: 'utf8' })
  return {
    path: join(MODULES_FOLDER, MODULE),
    version: /^Version: (\S+)$/m.exec(stdout)?.[1] ?? 'of an unknown version'
  }
}

function version() {
  const { stdout } = spawnSync(APACHE, ['-v'], { encoding: 'utf8' })
  return `${findModule().version} in Apache ${/Apache\/(\S+)/.exec(stdout)?.[1]}`
}
