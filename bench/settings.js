/** The values that all parts of the benchmark share, and the server's settings with its own defaults. */
import { parseRules } from '../dist/config/proxy-rules.js'
import { settingKeys, settingOf } from '../dist/config/settings.js'

export const CLIENT_ID = 'bench'
export const INTERNAL_SCOPES = ['data:read', 'viewables:read']
export const PUBLIC_SCOPES = ['viewables:read']
/** With the scheme http, cookie names have no prefix. With this path, the server has no base path. The rest has no effect. */
export const CALLBACK_URL = 'http://localhost:8080/api/auth/callback'
export const USER_INFO = {
  sub: '1',
  name: 'Ada Lovelace',
  given_name: 'Ada',
  family_name: 'Lovelace',
  email: 'ada@mail.example'
}
export const DISPLAY_NAME = 'Ada Lovelace'

/**
 * The parameters of a candidate.
 * @typedef {object} Bench
 * @property {string} secret generated for each run
 * @property {string} providerUrl the stand-in identity provider
 * @property {string} wwwroot a folder with one file
 * @property {string} [apiUrl] an API that needs an access token
 * @property {number} [port] a free port, unless one is given
 * @property {import('./sessions.js').Session} session candidates without sessions return the tokens of this session
 * @property {string[]} [flags] further flags of oauth2-proxy
 * @property {string} [directives] further directives of Apache
 */

/**
 * @param {Bench} bench
 * @returns {import('../dist/config/settings.js').Config}
 */
export function serverConfig({ secret, providerUrl, wwwroot }) {
  const given = {
    mode: 'dual',
    port: 0,
    host: '127.0.0.1',
    wwwroot,
    'session.secret': secret,
    'platform.clientId': CLIENT_ID,
    'platform.clientSecret': secret,
    'platform.callbackUrl': CALLBACK_URL,
    'platform.internalTokenScopes': INTERNAL_SCOPES,
    'platform.publicTokenScopes': PUBLIC_SCOPES,
    'platform.authorizationEndpoint': `${providerUrl}/authorize`,
    'platform.tokenEndpoint': `${providerUrl}/token`,
    'platform.userinfoEndpoint': `${providerUrl}/userinfo`,
    'platform.revocationEndpoint': 'none',
    'platform.endSessionEndpoint': 'none',
    'apiProxy.rules': parseRules([`GET,POST /proxied/* ${providerUrl}/proxied/*`]).rules,
    'apiProxy.maxBody': 2 ** 31
  }
  const config = {}
  for (const key of settingKeys) {
    const value = key in given ? given[key] : settingOf(key).default
    const [group, member] = key.split('.')
    if (member === undefined) config[key] = value
    else config[group] = { ...config[group], [member]: value }
  }
  return config
}
