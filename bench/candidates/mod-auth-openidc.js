/** Apache with mod_auth_openidc. By default, it keeps the sessions in memory that Apache's processes share. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CLIENT_ID } from '../settings.js'
import { FORWARD_AUTH_PATH } from './common.js'
import { startProgram, unmeasurable } from './program.js'

// The paths of the Debian packages.
const APACHE = '/usr/sbin/apache2'
const MODULES = '/usr/lib/apache2/modules'
const MODULE_NAMES = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'alias', 'mime', 'auth_openidc']

/** @returns {string | undefined} the reason why it cannot be measured here */
export function install() {
  if (unmeasurable) return unmeasurable
  if (existsSync(APACHE) && existsSync(join(MODULES, 'mod_auth_openidc.so'))) return undefined
  return 'it is not installed. On Debian: `apt-get install apache2 libapache2-mod-auth-openidc`'
}

/** @param {import('../settings.js').Bench} bench */
export function start({ secret, providerUrl, wwwroot, directives = '' }) {
  return startProgram(({ folder, port, origin }) => ({
    command: APACHE,
    args: ['-D', 'FOREGROUND', '-f', join(folder, 'apache.conf')],
    files: {
      'auth.json': '{"authenticated":true}',
      'apache.conf': `
${MODULE_NAMES.map(name => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}
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
