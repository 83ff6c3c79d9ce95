import { fileURLToPath } from 'node:url'
import { accessEntries } from './access-entry.js'
import { clientKey, keyAlgorithm } from './client-key.js'
import { answerHeaderNames, csrfHeaderName, requestHeaderNames } from './header-names.js'
import { longestTimeoutSeconds, proxyRoutes } from './proxy-rules.js'
import { redisUrl } from './redis-url.js'
import { clientId, clientSecret, sessionSecret, sessionSecrets } from './secrets.js'
import { integer, list, logLevel, oneOf, port, seconds, string, type ValueType, yesOrNo } from './types.js'
import { callbackUrl, issuerUrl, optionalProviderUrl, providerUrl } from './urls.js'

/**
 * The table of all settings. The command line, the environment reader, the validation, the JSON Schema and the reference
 * tables of README.md and docs/configuration.md are generated from it. To add a setting, add a row.
 */

/** The folder of the packaged starter page. It is served if the operator has no folder of static files. */
export const STARTER_PAGE = fileURLToPath(new URL('../../wwwroot', import.meta.url))

/** Marks a setting that has no default, because the operator must set it. */
export const required = Symbol('required')

export interface Setting<Value = unknown> {
  readonly env: string
  /** The name of the variable in the tutorials of Autodesk Platform Services. This variable is used if `env` is not set. */
  readonly tutorialEnv?: string
  /** The flag in the syntax of commander. The value of a flag that ends in `-file <file>` is the path of a file. */
  readonly flag?: string
  /** The short form of the flag, such as `-p`. */
  readonly shortFlag?: string
  readonly type: ValueType<Value>
  readonly default: Value | undefined | typeof required
  /** The text for the default in the reference, if the value itself is not clear. */
  readonly defaultText?: string
  /**
   * True if the value is a secret. All output hides the value. If its type has a function `mask`, output hides only the
   * password in the value. The value can also be read from the file whose path is in `<env>_FILE`.
   */
  readonly secret?: true
  /**
   * True if an empty value is an error. An empty value of any other setting counts as not set, and its default applies. If
   * an empty access list counted as not set, everyone could sign in. A colour without quotation marks is a comment in YAML
   * and in `.env`, so its value is empty.
   */
  readonly rejectsEmpty?: true
  /** Explains the setting in the reference, in `--help` and in settings files. */
  readonly summary: string
}

// RFC 6749 section 3.3.
const scopes = list('scopes separated by spaces', /^[\x21\x23-\x5b\x5d-\x7e]+$/)
const hostName = string('a host name or an IP address', /^[A-Za-z0-9.:%_-]+$/)
// A path below wwwroot. Files whose name begins with a dot are not served.
const pathInside = /^(?!\.)[^\s/\\?#%]+(\/(?!\.)[^\s/\\?#%]+)*$/
const endpoint = {
  default: undefined,
  defaultText: 'the endpoint of APS, or the endpoint from the discovery document'
} as const

// With https, the server adds the prefix `__Host-` to the cookie name, so the setting may contain or omit this prefix.
// Other names that begin with `__` and a word and `-`, such as `__Secure-`, are rejected. Browsers give such prefixes a
// meaning, also in other letter case, and reject the cookie without https (RFC 6265bis section 5.7).
const cookieNamePattern = /^(__Host-)?(?!__[A-Za-z]+-)[A-Za-z0-9._-]{1,64}$/
const anyCookieName = string(
  'up to 64 letters, digits, dots, underscores and hyphens, without a prefix such as __Secure-',
  cookieNamePattern
)
const cookieName: ValueType<string> = {
  ...anyCookieName,
  parse(written) {
    const parsed = anyCookieName.parse(written)
    return 'value' in parsed ? { value: parsed.value.replace(/^__Host-/, '') } : parsed
  }
}

export const settings = {
  mode: {
    env: 'PLATFORM_AUTH_MODE',
    flag: '--mode <mode>',
    type: oneOf('single', 'dual'),
    default: 'single',
    summary:
      'With single, each session has one access token, which stays on the server. With dual, it also has a second access token with fewer scopes for your pages (the public token).'
  },
  port: {
    env: 'PORT',
    flag: '--port <port>',
    shortFlag: '-p',
    type: port,
    default: 8080,
    summary: 'Port on which the server listens. With 0, the system chooses a free port.'
  },
  host: {
    env: 'PLATFORM_AUTH_HOST',
    flag: '--host <host>',
    type: hostName,
    default: undefined,
    defaultText: 'all interfaces',
    summary: 'Host name or address on which the server listens.'
  },
  wwwroot: {
    env: 'PLATFORM_AUTH_WWWROOT',
    flag: '--wwwroot <folder>',
    type: string('a folder', /\S/),
    default: undefined,
    defaultText: './wwwroot if it exists, otherwise the packaged starter page',
    summary: 'Folder of static files, relative to the working directory.'
  },
  fallback: {
    env: 'PLATFORM_AUTH_FALLBACK',
    flag: '--fallback <file>',
    type: string('a file of wwwroot, such as index.html', pathInside),
    default: undefined,
    summary:
      'File that is served if a browser opens an address for which wwwroot has no file. Single-page applications need this setting.'
  },
  hashedAssets: {
    env: 'PLATFORM_AUTH_HASHED_ASSETS',
    flag: '--hashed-assets <folders>',
    type: list('folders of wwwroot separated by spaces, such as assets', pathInside),
    default: undefined,
    summary: 'Folders whose file names change with the content. Browsers may cache these files for a year.'
  },
  extend: {
    env: 'PLATFORM_AUTH_EXTEND',
    flag: '--extend <file>',
    type: string('a JavaScript module', /\S/),
    default: undefined,
    summary: 'Module whose default export adds your own routes.'
  },
  'session.secret': {
    env: 'SERVER_SESSION_SECRET',
    flag: '--session-secret-file <file>',
    type: sessionSecret,
    default: required,
    secret: true,
    summary: 'Secret that encrypts the session cookie.'
  },
  'session.previousSecrets': {
    env: 'SERVER_SESSION_PREVIOUS_SECRETS',
    type: sessionSecrets,
    default: [],
    defaultText: 'none',
    secret: true,
    summary: 'Earlier session secrets. A session that was encrypted with one of them stays valid.'
  },
  'session.maxAgeSeconds': {
    env: 'PLATFORM_AUTH_SESSION_MAX_AGE',
    flag: '--session-max-age <seconds>',
    // Browsers keep no cookie longer than 400 days (RFC 6265bis section 5.5).
    type: seconds(1, 34_560_000),
    default: 86_400,
    summary: 'Lifetime of a session, counted from its login or its last refresh.'
  },
  'session.absoluteMaxAgeSeconds': {
    env: 'PLATFORM_AUTH_SESSION_ABSOLUTE_MAX_AGE',
    // If a browser logs in again within 60 seconds and sends no session cookie, the server assumes that the browser does
    // not keep the cookie and that the page starts logins again and again (a login loop). If a session could end sooner,
    // an ordinary second login would also be treated as a loop.
    type: seconds(60, 315_360_000),
    default: undefined,
    summary: 'Maximum lifetime of a session, counted from its login. A refresh does not extend it.'
  },
  'session.store': {
    env: 'PLATFORM_AUTH_SESSION_STORE',
    flag: '--session-store <store>',
    type: oneOf('cookie', 'redis'),
    default: 'cookie',
    summary:
      'With cookie, the encrypted session is in cookies, which hold 15 kB. With redis, it is in the Redis of redisUrl, for tokens of up to 250 kB, and the cookie has about 200 bytes. If Redis then loses its data, everyone is signed out. While Redis is away, requests with a session get 503.'
  },
  'session.cookieName': {
    env: 'PLATFORM_AUTH_COOKIE_NAME',
    type: cookieName,
    default: 'platform_session',
    summary: 'Name of the session cookie.'
  },
  'platform.clientId': {
    env: 'PLATFORM_CLIENT_ID',
    tutorialEnv: 'APS_CLIENT_ID',
    flag: '--client-id <id>',
    type: clientId,
    default: required,
    summary: 'OAuth client id of the application.'
  },
  'platform.clientSecret': {
    env: 'PLATFORM_CLIENT_SECRET',
    tutorialEnv: 'APS_CLIENT_SECRET',
    flag: '--client-secret-file <file>',
    type: clientSecret,
    default: required,
    secret: true,
    summary: 'OAuth client secret of the application. It is not needed with private_key_jwt.'
  },
  'platform.clientKey': {
    env: 'PLATFORM_CLIENT_KEY',
    flag: '--client-key-file <file>',
    type: clientKey,
    default: undefined,
    secret: true,
    summary: 'Private key that replaces the client secret if platform.clientAuthentication is private_key_jwt.'
  },
  'platform.clientKeyId': {
    env: 'PLATFORM_CLIENT_KEY_ID',
    type: string('the key id (kid) as the provider shows it', /^[\x20-\x7e]+$/),
    default: undefined,
    defaultText: 'the kid of the JWK',
    summary: 'Key id that tells the provider which public key belongs to platform.clientKey.'
  },
  'platform.clientKeyAlgorithm': {
    env: 'PLATFORM_CLIENT_KEY_ALGORITHM',
    type: keyAlgorithm,
    default: undefined,
    defaultText: 'RS256 for RSA, ES256 for P-256, EdDSA for Ed25519',
    summary: 'Signature algorithm of platform.clientKey.'
  },
  'platform.callbackUrl': {
    env: 'PLATFORM_CALLBACK_URL',
    tutorialEnv: 'APS_CALLBACK_URL',
    flag: '--callback-url <address>',
    type: callbackUrl,
    default: required,
    summary: 'Public address of GET /api/auth/callback. Register exactly this address at the provider.'
  },
  'platform.scopes': {
    env: 'PLATFORM_SCOPES',
    flag: '--scopes <scopes>',
    type: scopes,
    default: ['data:read', 'account:read', 'account:write'],
    summary: 'Scopes of the access token (single mode).'
  },
  'platform.internalScopes': {
    env: 'INTERNAL_TOKEN_SCOPES',
    flag: '--internal-scopes <scopes>',
    type: scopes,
    default: ['data:read', 'viewables:read'],
    summary: 'Scopes of the token that stays on the server (dual mode).'
  },
  'platform.publicScopes': {
    env: 'PUBLIC_TOKEN_SCOPES',
    flag: '--public-scopes <scopes>',
    type: scopes,
    default: ['viewables:read'],
    summary: 'Scopes of the token for pages (dual mode). Each of them must also be in platform.internalScopes.'
  },
  'platform.issuer': {
    env: 'PLATFORM_ISSUER',
    flag: '--issuer <address>',
    type: issuerUrl,
    default: undefined,
    summary:
      'Issuer of the identity provider. If it is set, the endpoints come from its discovery document. Otherwise they are those of Autodesk Platform Services (APS).'
  },
  'platform.authorizationEndpoint': {
    env: 'PLATFORM_AUTHORIZATION_ENDPOINT',
    type: providerUrl,
    ...endpoint,
    summary: 'Address to which a login sends the browser.'
  },
  'platform.tokenEndpoint': {
    env: 'PLATFORM_TOKEN_ENDPOINT',
    type: providerUrl,
    ...endpoint,
    summary: 'Address at which the server exchanges a code or a refresh token for new tokens.'
  },
  'platform.userinfoEndpoint': {
    env: 'PLATFORM_USERINFO_ENDPOINT',
    type: optionalProviderUrl,
    ...endpoint,
    summary:
      'Address that returns the display name of a person. If it is set to none, the name comes from the ID token, and the scopes must contain openid.'
  },
  'platform.revocationEndpoint': {
    env: 'PLATFORM_REVOCATION_ENDPOINT',
    type: optionalProviderUrl,
    ...endpoint,
    summary: 'Address at which a logout revokes the refresh token. If it is set to none, a logout revokes nothing.'
  },
  'platform.endSessionEndpoint': {
    env: 'PLATFORM_END_SESSION_ENDPOINT',
    type: optionalProviderUrl,
    ...endpoint,
    summary:
      "Address of the provider's logout page. If the setting logout has the value idp, a logout sends the browser to this address. Set this setting to none if the provider has no logout page."
  },
  'platform.backChannelLogout': {
    env: 'PLATFORM_BACK_CHANNEL_LOGOUT',
    type: yesOrNo,
    default: false,
    summary:
      'Accepts logout tokens of the provider at POST /api/auth/backchannel-logout, and ends the sessions that they name. It also makes /api/auth/logout?everywhere=true end all sessions of a person. It needs platform.issuer and the scope openid.'
  },
  'platform.clientAuthentication': {
    env: 'PLATFORM_CLIENT_AUTHENTICATION',
    type: oneOf('client_secret_basic', 'client_secret_post', 'private_key_jwt'),
    default: 'client_secret_basic',
    summary:
      'Method of client authentication at the token endpoint. client_secret_basic sends the client secret in a header, and client_secret_post in the body. private_key_jwt sends a JWT that is signed with platform.clientKey.'
  },
  'platform.pkce': {
    env: 'PLATFORM_PKCE',
    flag: '--no-pkce',
    type: yesOrNo,
    default: true,
    summary:
      'Proof that a code belongs to the login that requested it (PKCE, RFC 7636). Switch PKCE off only if the provider rejects it.'
  },
  'platform.prompt': {
    env: 'PLATFORM_PROMPT',
    flag: '--prompt <prompt>',
    type: string('prompt values such as login', /^[a-z_]+( [a-z_]+)*$/),
    default: undefined,
    summary:
      'Value of the prompt parameter of a login. With login, the provider asks people to sign in each time, so they can choose another account.'
  },
  'platform.timeoutSeconds': {
    env: 'PLATFORM_TIMEOUT',
    type: seconds(1, 300),
    default: 10,
    summary: 'Time limit for a response of the identity provider.'
  },
  'refresh.marginSeconds': {
    env: 'PLATFORM_AUTH_REFRESH_MARGIN',
    type: seconds(0, 3600),
    default: 0,
    summary: 'A request refreshes the session if its access token expires within this time.'
  },
  'refresh.spreadSeconds': {
    env: 'PLATFORM_AUTH_REFRESH_SPREAD',
    type: seconds(0, 3600),
    default: 0,
    summary:
      'Maximum time that is added to refresh.marginSeconds. The added time differs between sessions, so that sessions that began together are refreshed at different times.'
  },
  'profile.keepSeconds': {
    env: 'PLATFORM_AUTH_PROFILE_KEEP',
    type: seconds(0, 3600),
    default: 0,
    summary:
      'Time for which the profile of a session is cached. With 0, every request for the profile calls the provider.'
  },
  'access.allow': {
    env: 'PLATFORM_AUTH_ACCESS_ALLOW',
    type: accessEntries,
    default: undefined,
    defaultText: 'everyone',
    rejectsEmpty: true,
    summary:
      'E-mail addresses, domains, and claims such as groups=admins of the people who may sign in. One of them must fit. The provider must confirm that it has verified the address of the person.'
  },
  logout: {
    env: 'PLATFORM_AUTH_LOGOUT',
    flag: '--logout <how>',
    type: oneOf('local', 'revoke', 'idp'),
    default: 'revoke',
    summary:
      'Effect of a logout. With local, it ends only the session of this server. With revoke, it ends the session and revokes the refresh token. With idp, it ends the session and the browser signs out at the provider.'
  },
  'proxy.routes': {
    env: 'PLATFORM_AUTH_PROXY_ROUTES',
    flag: '--proxy <rule>',
    type: proxyRoutes,
    default: [],
    defaultText: 'none',
    summary: 'Rules for requests that are forwarded to an API with the token of the session.'
  },
  'proxy.requestHeaders': {
    env: 'PLATFORM_AUTH_PROXY_REQUEST_HEADERS',
    type: requestHeaderNames,
    // The APIs of APS need these two headers to select a region. No API needs an additional response header.
    default: ['x-ads-region', 'region'],
    summary: 'Additional request headers that the proxy forwards.'
  },
  'proxy.answerHeaders': {
    env: 'PLATFORM_AUTH_PROXY_ANSWER_HEADERS',
    type: answerHeaderNames,
    default: [],
    defaultText: 'none',
    summary: 'Additional response headers that the proxy forwards.'
  },
  'proxy.timeoutSeconds': {
    env: 'PLATFORM_AUTH_PROXY_TIMEOUT',
    type: seconds(1, longestTimeoutSeconds),
    default: 60,
    summary: 'Time limit for an upstream to send the next part of its response.'
  },
  'proxy.maxBodyBytes': {
    env: 'PLATFORM_AUTH_PROXY_MAX_BODY',
    type: integer(0, 1_099_511_627_776, 'a whole number of bytes'),
    default: 104_857_600,
    summary: 'Maximum size of a request body that the proxy forwards.'
  },
  'proxy.csrfHeader': {
    env: 'PLATFORM_AUTH_PROXY_CSRF_HEADER',
    type: csrfHeaderName,
    default: undefined,
    summary:
      'Name of a header that every request to the API proxy must have. Pages of other sites cannot add this header.'
  },
  redisUrl: {
    env: 'REDIS_URL',
    flag: '--redis-url <address>',
    type: redisUrl,
    default: undefined,
    secret: true,
    summary:
      'Address of the Redis server with which replicas coordinate refreshes and share logouts. A single process needs no Redis.'
  },
  'redisTls.caFile': {
    env: 'REDIS_TLS_CA_FILE',
    type: string('a PEM file with one or more certificates', /\S/),
    default: undefined,
    defaultText: 'the authorities that Node trusts',
    summary:
      'File with the certificates of the authorities that may sign the certificate of Redis. They replace the authorities that Node trusts.'
  },
  'redisTls.certFile': {
    env: 'REDIS_TLS_CERT_FILE',
    type: string('a PEM file with a certificate', /\S/),
    default: undefined,
    summary: 'File with the client certificate for Redis.'
  },
  'redisTls.keyFile': {
    env: 'REDIS_TLS_KEY_FILE',
    type: string('a PEM file with a private key without a passphrase', /\S/),
    default: undefined,
    summary: 'File with the private key of redisTls.certFile.'
  },
  'log.level': {
    env: 'LOG_LEVEL',
    flag: '--log-level <level>',
    type: logLevel,
    default: 'info',
    summary: 'Least severe level that is logged, as a word or as the number in the JSON lines.'
  },
  'log.pretty': {
    env: 'PLATFORM_AUTH_LOG_PRETTY',
    flag: '--log-pretty',
    type: yesOrNo,
    default: undefined,
    defaultText: 'on a terminal only',
    summary: 'Writes log lines for people instead of JSON: one line for each event, and a second line for an error.'
  },
  'log.requests': {
    env: 'PLATFORM_AUTH_LOG_REQUESTS',
    flag: '--log-requests',
    type: yesOrNo,
    default: false,
    summary: 'Logs one line for every request. Successful requests for /healthz and /readyz are left out.'
  },
  trustProxy: {
    env: 'PLATFORM_AUTH_TRUST_PROXY',
    flag: '--trust-proxy',
    type: yesOrNo,
    default: false,
    summary: 'Reads the client address for the logs from X-Forwarded-For. The setting has no other effect.'
  },
  'pages.name': {
    env: 'PLATFORM_AUTH_PAGES_NAME',
    type: string('a name of up to 80 characters', /^\S(?:.{0,78}\S)?$/),
    default: undefined,
    summary: 'Name of your application on the pages of this server, such as error pages.'
  },
  'pages.logo': {
    env: 'PLATFORM_AUTH_PAGES_LOGO',
    type: string('an image file (SVG, PNG, JPEG, WebP or GIF) of up to 32768 bytes', /\S/),
    default: undefined,
    summary: 'Logo on the pages of this server. It replaces the name, which screen readers still read.'
  },
  'pages.accent': {
    env: 'PLATFORM_AUTH_PAGES_ACCENT',
    type: string('a colour such as "#1d5fc2", in quotation marks', /^#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$/),
    default: undefined,
    defaultText: 'a blue',
    rejectsEmpty: true,
    summary: 'Colour of the buttons and links on the pages of this server.'
  },
  'pages.folder': {
    env: 'PLATFORM_AUTH_PAGES_FOLDER',
    type: string('a folder', /\S/),
    default: undefined,
    summary: 'Folder with your own texts, languages and templates for the pages of this server.'
  },
  'forwardAuth.port': {
    env: 'PLATFORM_AUTH_FORWARD_AUTH_PORT',
    flag: '--forward-auth-port <port>',
    type: port,
    default: undefined,
    defaultText: 'off',
    summary:
      'Port on which a gateway such as nginx, Caddy or Traefik asks if the person who sent a request is signed in (forward-auth). Browsers must not be able to reach this port.'
  },
  'forwardAuth.host': {
    env: 'PLATFORM_AUTH_FORWARD_AUTH_HOST',
    type: hostName,
    // The server itself listens on all addresses, because browsers must reach it. This port gives away tokens, so by
    // default it is open only to this machine.
    default: '127.0.0.1',
    summary: 'Host name or address on which the forward-auth port listens.'
  },
  'metrics.port': {
    env: 'PLATFORM_AUTH_METRICS_PORT',
    flag: '--metrics-port <port>',
    type: port,
    default: undefined,
    defaultText: 'off',
    summary: 'Port on which Prometheus reads the metrics.'
  },
  'metrics.host': {
    env: 'PLATFORM_AUTH_METRICS_HOST',
    type: hostName,
    // As with forward-auth, other machines need no access unless the operator says so.
    default: '127.0.0.1',
    summary: 'Host name or address on which the metrics port listens.'
  },
  'shutdown.delaySeconds': {
    env: 'PLATFORM_AUTH_SHUTDOWN_DELAY',
    type: seconds(0, 300),
    default: 0,
    summary: 'Time for which a stopping server continues to serve requests while /readyz already answers 503.'
  },
  'shutdown.graceSeconds': {
    env: 'PLATFORM_AUTH_SHUTDOWN_GRACE',
    type: seconds(0, 300),
    // A refresh in dual mode makes up to two provider calls. With the default of platform.timeoutSeconds they take at most
    // 20 seconds, and 5 seconds are left in reserve.
    default: 25,
    summary: 'Time for which a stopping server waits for its current requests.'
  }
} as const satisfies Record<string, Setting>

export type SettingKey = keyof typeof settings

type Group = SettingKey extends infer Key ? (Key extends `${infer Name}.${string}` ? Name : never) : never
type Member<Name extends Group> = Extract<SettingKey, `${Name}.${string}`> extends `${Name}.${infer Key}` ? Key : never
type TopKey = Exclude<SettingKey, `${string}.${string}`>

type SettingRow<Key extends SettingKey> = (typeof settings)[Key]
type OrUndefined<Key extends SettingKey, Value> =
  SettingRow<Key> extends { default: undefined } ? Value | undefined : Value
type ValueOf<Key extends string> = Key extends SettingKey
  ? SettingRow<Key> extends { type: ValueType<infer Value, infer _Written> }
    ? OrUndefined<Key, Value>
    : never
  : never
/** The value of a setting as a file or program contains it. */
type WrittenOf<Key extends string> = Key extends SettingKey
  ? SettingRow<Key> extends { type: ValueType<infer _Value, infer Written> }
    ? OrUndefined<Key, Written>
    : never
  : never

/**
 * The valid settings, with all defaults. The values are parsed: `proxy.routes` has rules, and `redisUrl` has an
 * address. An optional setting without a default is `undefined` if it was not set. The part of a key before the dot is the
 * name of a group.
 */
export type Config = { readonly [Key in TopKey]: ValueOf<Key> } & {
  readonly [Name in Group]: { readonly [Key in Member<Name>]: ValueOf<`${Name}.${Key}`> }
}

/** The settings by key, without groups. Invalid settings, and required settings that were not set, are missing. */
export type Values = { readonly [Key in SettingKey]?: ValueOf<Key> }

/** Settings from a program. `null` selects the default, even if the environment or a file has a value for the setting. */
export type Overrides = { readonly [Key in TopKey]?: WrittenOf<Key> | null } & {
  readonly [Name in Group]?: { readonly [Key in Member<Name>]?: WrittenOf<`${Name}.${Key}`> | null }
}

export const settingKeys = Object.keys(settings) as readonly SettingKey[]

/** Returns the row of a setting as the type `Setting`, for code that handles all rows alike. */
export function settingOf(key: SettingKey): Setting {
  return settings[key]
}

/** Returns the value as a settings file would contain it. */
export function writtenValue(key: SettingKey, value: unknown): unknown {
  const { type } = settingOf(key)
  return value !== undefined && type.write ? type.write(value) : value
}

/** Returns the name of a declared flag, such as `--port` for `--port <port>`. */
export function flagName(flag: string): string {
  return flag.split(' ', 1).join('')
}

/**
 * True if the value of the flag is the path of a file. Secrets have such flags, because the process list shows all values.
 */
export function namesFile(flag: string | undefined): boolean {
  return flag?.endsWith('-file <file>') ?? false
}

export function isSettingKey(key: string): key is SettingKey {
  return Object.hasOwn(settings, key)
}

/** The names of the groups, in the order of the table. */
export const groups = [
  ...new Set(settingKeys.flatMap(key => (key.includes('.') ? [key.slice(0, key.indexOf('.'))] : [])))
]

/** Returns the text for the default in the reference, in `--help` and in settings files. */
export function defaultText(key: SettingKey): string {
  const { default: value, defaultText } = settingOf(key)
  if (defaultText !== undefined) return defaultText
  if (value === required) return 'required'
  if (value === undefined) return 'none'
  return Array.isArray(value) ? value.join(' ') : String(value)
}
