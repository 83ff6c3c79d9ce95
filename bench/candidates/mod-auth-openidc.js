/** Apache with mod_auth_openidc. By default, it keeps the sessions in memory that Apache's processes share. */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { CLIENT_ID } from '../settings.js'
import { FORWARD_AUTH_PATH } from './common.js'
import { caches, startProgram, unmeasurable } from './program.js'

// The paths of the Debian packages.
export const APACHE = '/usr/sbin/apache2'
const MODULES = '/usr/lib/apache2/modules'
const MODULE = 'mod_auth_openidc.so'
const BUILT = 'mod_auth_openidc-'
const MODULE_NAMES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'alias', 'mime']

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
export function findModule() {
  const built = existsSync(caches) ? readdirSync(caches).filter(name => name.startsWith(BUILT)) : []
  const newest = built.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).at(-1)
  if (newest) return { path: join(caches, newest, MODULE), version: newest.slice(BUILT.length) }
  const { stdout } = spawnSync('dpkg', ['-s', 'libapache2-mod-auth-openidc'], { encoding: 'utf8' })
  return { path: join(MODULES, MODULE), version: /^Version: (\S+)$/m.exec(stdout)?.[1] ?? 'of an unknown version' }
}

export function version() {
  const { stdout } = spawnSync(APACHE, ['-v'], { encoding: 'utf8' })
  return `${findModule().version} in Apache ${/Apache\/(\S+)/.exec(stdout)?.[1]}`
}

/**
 * Returns the directives that load modules.
 * @param {string[]} names modules of Apache
 */
export function loadModules(names) {
  const lines = names.map(name => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`)
  return [...lines, `LoadModule auth_openidc_module ${findModule().path}`].join('\n')
}

/** @param {import('../settings.js').Bench} bench */
export function start({ secret, providerUrl, wwwroot, directives = '' }) {
  return startProgram(({ folder, port, origin }) => ({
    command: APACHE,
    args: ['-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')],
    files: {
      'auth.json': '{"authenticated":true}',
      'apache.conf': `
${loadModules(MODULE_NAMES)}
Listen 127.0.0.1:${port}
ServerName 127.0.0.1
# Apache changes to this user if root starts it. Otherwise it ignores these two lines.
User www-data
Group www-data
ServerRoot ${folder}
DefaultRuntimeDir ${folder}
Mutex file:${folder} default
PidFile apache.pid
ErrorLog error.log
TypesConfig /etc/mime.types
KeepAliveTimeout 75
MaxKeepAliveRequests 0
# A process whose threads are all busy closes the connections that it keeps alive, and so does an idle process that is ended.
# With the default of 25 threads for each process, the load generator would report these closed connections as errors.
ThreadsPerChild 64
MaxRequestWorkers 128
MaxSpareThreads 128
DocumentRoot ${wwwroot}
Alias ${FORWARD_AUTH_PATH} ${folder}/auth.json
OIDCProviderMetadataURL ${providerUrl}/.well-known/openid-configuration
OIDCClientID ${CLIENT_ID}
OIDCClientSecret ${secret}
OIDCRedirectURI ${origin}/callback
OIDCCryptoPassphrase ${secret}
${directives}
<Location />
  AuthType openid-connect
  Require valid-user
</Location>
`
    }
  }))
}
