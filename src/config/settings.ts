import { accessEntries } from './access-entry.js'
import { callbackAddress, issuerAddress, optionalProviderAddress, providerAddress, redisAddress } from './addresses.js'
import { longestTimeoutSeconds } from './proxy-rules.js'
import { answerHeaderNames, csrfHeaderName, proxyRoutes, requestHeaderNames } from './proxy-types.js'
import { clientSecret, sessionSecret, sessionSecrets } from './secrets.js'
import { integer, list, oneOf, port, seconds, text, type ValueType, yesOrNo } from './types.js'

/**
 * The only place where a setting exists. The command line, the environment reader, the check of a file, the effective
 * settings, the JSON Schema and the reference table of the README are all made from these rows; a new setting is a
 * new row.
 */

/** Marks a setting that has no default. */
export const required = Symbol('required')

export interface Setting<Value = unknown> {
  readonly env: string
  /** The name that the platform's own tutorials give it; read when `env` is not there. */
  readonly tutorialEnv?: string
  /** As commander writes it. A flag that ends in `-file <file>` names a file that holds the value. */
  readonly flag?: string
  readonly type: ValueType<Value>
  readonly default: Value | undefined | typeof required
  /** What an absent value means, where `none` would not tell. */
  readonly defaultText?: string
  /** Never shown, and accepted from a file that `<env>_FILE` names. */
  readonly secret?: true
  /** An empty value is an error instead of counting as not given, because the default would then be less strict. */
  readonly refusesEmpty?: true
  /** One sentence. */
  readonly summary: string
}

// RFC 6749 section 3.3.
const scopes = list('scopes separated by spaces', /^[\x21\x23-\x5b\x5d-\x7e]+$/)
const hostName = text('a host name or an IP address', /^[A-Za-z0-9.:%_-]+$/)
// A path of names below wwwroot. Files that begin with a dot are not served.
const pathInside = /^(?!\.)[^\s/\\?#%]+(\/(?!\.)[^\s/\\?#%]+)*$/
const endpoint = { default: undefined, defaultText: 'that of APS, or discovered' } as const

// The session layer puts the prefix in front by itself where https allows it; a name that already has it means the
// same cookie. Without https browsers refuse a cookie whose name begins like that, in whatever case (RFC 6265bis section
// 5.7), and prefixes of the kind keep being added.
const cookieNamePattern = /^(__Host-)?(?!__[A-Za-z]+-)[A-Za-z0-9._-]{1,64}$/
const cookieName: ValueType<string> = {
  ...text('up to 64 letters, digits and . _ -, beginning with no prefix such as __Secure-', cookieNamePattern),
  schema: v =>
    v.pipe(
      v.string(),
      v.regex(cookieNamePattern),
      v.transform(name => name.replace(/^__Host-/, ''))
    )
}

export const settings = {
  mode: {
    env: 'PLATFORM_AUTH_MODE',
    flag: '--mode <mode>',
    type: oneOf('single', 'dual'),
    default: 'single',
    summary: 'One access token that stays on the server, or an internal one beside a public one for the pages.'
  },
  port: {
    env: 'PORT',
    flag: '--port <port>',
    type: port,
    default: 8080,
    summary: 'Port the server listens on; 0 takes any free one.'
  },
  host: {
    env: 'PLATFORM_AUTH_HOST',
    flag: '--host <host>',
    type: hostName,
    default: undefined,
    defaultText: 'all interfaces',
    summary: 'Host name or address to listen on.'
  },
  wwwroot: {
    env: 'PLATFORM_AUTH_WWWROOT',
    flag: '--wwwroot <folder>',
    type: text('a folder', /\S/),
    default: undefined,
    defaultText: './wwwroot if there, else the packaged starter page',
    summary: 'Folder of static files, relative to the working directory.'
  },
  fallback: {
    env: 'PLATFORM_AUTH_FALLBACK',
    flag: '--fallback <file>',
    type: text('a file of wwwroot, such as index.html', pathInside),
    default: undefined,
    summary: 'File that a single-page application gets for every page address that is no file.'
  },
  hashedAssets: {
    env: 'PLATFORM_AUTH_HASHED_ASSETS',
    flag: '--hashed-assets <folders>',
    type: list('folders of wwwroot separated by spaces, such as assets', pathInside),
    default: undefined,
    summary: 'Folders whose file names change with the content, so that browsers may keep the files for a year.'
  },
  extend: {
    env: 'PLATFORM_AUTH_EXTEND',
    flag: '--extend <file>',
    type: text('a JavaScript module', /\S/),
    default: undefined,
    summary: 'Module whose default export adds routes of your own.'
  },
  'session.secret': {
    env: 'SERVER_SESSION_SECRET',
    flag: '--session-secret-file <file>',
    type: sessionSecret,
    default: required,
    secret: true,
    summary: 'Secret that seals the session cookie.'
  },
  'session.previousSecrets': {
    env: 'SERVER_SESSION_PREVIOUS_SECRETS',
    type: sessionSecrets,
    default: [],
    defaultText: 'none',
    secret: true,
    summary: 'Earlier secrets that still open sessions after a rotation.'
  },
  'session.maxAgeSeconds': {
    env: 'PLATFORM_AUTH_SESSION_MAX_AGE',
    flag: '--session-max-age <seconds>',
    // Browsers keep no cookie longer than 400 days (RFC 6265bis section 5.5).
    type: seconds(1, 34_560_000),
    default: 86_400,
    summary: 'How long a session lasts after its tokens last changed.'
  },
  'session.absoluteMaxAgeSeconds': {
    env: 'PLATFORM_AUTH_SESSION_ABSOLUTE_MAX_AGE',
    // At least a minute, within which a login without a session cookie counts as a login loop; at most ten years.
    type: seconds(60, 315_360_000),
    default: undefined,
    summary: 'Latest end of a session after its login, however often its tokens are refreshed.'
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
    // RFC 6749 appendix A.1, less the colon, which HTTP Basic takes for the end of the user name (RFC 7617 section 2).
    type: text(
      'the client id as the provider shows it (visible ASCII characters, no colon)',
      /^(?!replace-)[\x21-\x39\x3b-\x7e]+$/
    ),
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
    summary: 'OAuth client secret of the application.'
  },
  'platform.callbackUrl': {
    env: 'PLATFORM_CALLBACK_URL',
    tutorialEnv: 'APS_CALLBACK_URL',
    flag: '--callback-url <address>',
    type: callbackAddress,
    default: required,
    summary: 'Public address of GET /api/auth/callback, exactly as registered at the provider.'
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
    summary: 'Scopes of the token that pages may have, some of the internal ones (dual mode).'
  },
  'platform.issuer': {
    env: 'PLATFORM_ISSUER',
    flag: '--issuer <address>',
    type: issuerAddress,
    default: undefined,
    summary: 'Issuer whose discovery document names the endpoints, in place of those of APS.'
  },
  'platform.authorizationEndpoint': {
    env: 'PLATFORM_AUTHORIZATION_ENDPOINT',
    type: providerAddress,
    ...endpoint,
    summary: 'Where a login begins.'
  },
  'platform.tokenEndpoint': {
    env: 'PLATFORM_TOKEN_ENDPOINT',
    type: providerAddress,
    ...endpoint,
    summary: 'Where codes and refresh tokens are exchanged.'
  },
  'platform.userinfoEndpoint': {
    env: 'PLATFORM_USERINFO_ENDPOINT',
    type: optionalProviderAddress,
    ...endpoint,
    summary:
      'Where the display name comes from; none takes it from the ID token, for which openid must be among the scopes.'
  },
  'platform.revocationEndpoint': {
    env: 'PLATFORM_REVOCATION_ENDPOINT',
    type: optionalProviderAddress,
    ...endpoint,
    summary: 'Where a refresh token is revoked at logout; none switches that off.'
  },
  'platform.endSessionEndpoint': {
    env: 'PLATFORM_END_SESSION_ENDPOINT',
    type: optionalProviderAddress,
    ...endpoint,
    summary: 'Where logout sends the browser with logout: idp; none if the provider has no such page.'
  },
  'platform.clientAuthentication': {
    env: 'PLATFORM_CLIENT_AUTHENTICATION',
    type: oneOf('client_secret_basic', 'client_secret_post'),
    default: 'client_secret_basic',
    summary: 'How the client id and secret go to the token endpoint: in a header or in the body.'
  },
  'platform.pkce': {
    env: 'PLATFORM_PKCE',
    flag: '--no-pkce',
    type: yesOrNo,
    default: true,
    summary:
      'Proof that a code belongs to the login that asked for it (RFC 7636); off only where the provider refuses it.'
  },
  'platform.prompt': {
    env: 'PLATFORM_PROMPT',
    flag: '--prompt <prompt>',
    type: text('prompt values such as login', /^[a-z_]+( [a-z_]+)*$/),
    default: undefined,
    summary: 'Prompt parameter of a login; login lets people change the account.'
  },
  'platform.timeoutSeconds': {
    env: 'PLATFORM_TIMEOUT',
    type: seconds(1, 300),
    default: 10,
    summary: 'Longest wait for an answer of the identity provider.'
  },
  'refresh.marginSeconds': {
    env: 'PLATFORM_AUTH_REFRESH_MARGIN',
    type: seconds(0, 3600),
    default: 0,
    summary: 'How long before its expiry a token is refreshed.'
  },
  'refresh.spreadSeconds': {
    env: 'PLATFORM_AUTH_REFRESH_SPREAD',
    type: seconds(0, 3600),
    default: 0,
    summary:
      'Refreshes each session earlier by a different share of this time, so that people who signed in together are not refreshed together.'
  },
  'refresh.keepSeconds': {
    env: 'PLATFORM_AUTH_REFRESH_KEEP',
    type: seconds(1, 3600),
    default: 60,
    summary: 'How long a refreshed session is kept for requests that still carry the old cookie.'
  },
  'profile.keepSeconds': {
    env: 'PLATFORM_AUTH_PROFILE_KEEP',
    type: seconds(0, 3600),
    default: 0,
    summary: 'How long the profile of a session is reused before the provider is asked again; 0 asks at every request.'
  },
  'access.allow': {
    env: 'PLATFORM_AUTH_ACCESS_ALLOW',
    type: accessEntries,
    default: undefined,
    defaultText: 'everyone',
    refusesEmpty: true,
    summary: 'E-mail addresses and @domains that may sign in; their provider must say that the address is verified.'
  },
  logout: {
    env: 'PLATFORM_AUTH_LOGOUT',
    flag: '--logout <how>',
    type: oneOf('local', 'revoke', 'idp'),
    default: 'revoke',
    summary: 'Ends the session here only, also revokes its refresh token, or also signs out at the provider.'
  },
  'proxy.routes': {
    env: 'PLATFORM_AUTH_PROXY_ROUTES',
    flag: '--proxy <rule>',
    type: proxyRoutes,
    default: [],
    defaultText: 'none',
    summary: 'Requests that are forwarded to an API with the token of the session, one rule for each path.'
  },
  'proxy.requestHeaders': {
    env: 'PLATFORM_AUTH_PROXY_REQUEST_HEADERS',
    type: requestHeaderNames,
    default: ['x-ads-region', 'region'],
    summary: 'Further request headers that the proxy passes on.'
  },
  'proxy.answerHeaders': {
    env: 'PLATFORM_AUTH_PROXY_ANSWER_HEADERS',
    type: answerHeaderNames,
    default: [],
    defaultText: 'none',
    summary: 'Further answer headers that the proxy passes on.'
  },
  'proxy.timeoutSeconds': {
    env: 'PLATFORM_AUTH_PROXY_TIMEOUT',
    type: seconds(1, longestTimeoutSeconds),
    default: 60,
    summary: 'Longest silence of an upstream, before and within its answer.'
  },
  'proxy.maxBodyBytes': {
    env: 'PLATFORM_AUTH_PROXY_MAX_BODY',
    type: integer(0, 1_099_511_627_776, 'a whole number of bytes'),
    default: 104_857_600,
    summary: 'Longest request body that the proxy passes on.'
  },
  'proxy.csrfHeader': {
    env: 'PLATFORM_AUTH_PROXY_CSRF_HEADER',
    type: csrfHeaderName,
    default: undefined,
    summary: 'Name of a header that every proxied request must carry.'
  },
  redisUrl: {
    env: 'REDIS_URL',
    flag: '--redis-url <address>',
    type: redisAddress,
    default: undefined,
    secret: true,
    summary:
      'Redis through which replicas coordinate refreshes and share logouts; without it each process is on its own.'
  },
  redisAway: {
    env: 'PLATFORM_AUTH_REDIS_AWAY',
    type: oneOf('wait', 'alone'),
    default: 'wait',
    summary:
      'While Redis is unusable, wait answers 503 to requests that need a refresh; alone lets each replica refresh, which can lose logins.'
  },
  'log.level': {
    env: 'LOG_LEVEL',
    flag: '--log-level <level>',
    type: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    default: 'info',
    summary: 'Least severe level that is logged.'
  },
  'log.pretty': {
    env: 'PLATFORM_AUTH_LOG_PRETTY',
    flag: '--log-pretty',
    type: yesOrNo,
    default: undefined,
    defaultText: 'on a terminal only',
    summary: 'Log lines for people in place of JSON.'
  },
  'log.requests': {
    env: 'PLATFORM_AUTH_LOG_REQUESTS',
    flag: '--log-requests',
    type: yesOrNo,
    default: false,
    summary: 'Logs one line for every request.'
  },
  trustProxy: {
    env: 'PLATFORM_AUTH_TRUST_PROXY',
    flag: '--trust-proxy',
    type: yesOrNo,
    default: false,
    summary: 'Takes the client address of the logs from X-Forwarded-For; changes nothing else.'
  },
  'forwardAuth.port': {
    env: 'PLATFORM_AUTH_FORWARD_AUTH_PORT',
    flag: '--forward-auth-port <port>',
    type: port,
    default: undefined,
    defaultText: 'off',
    summary:
      'Port on which gateways such as nginx, Caddy and Traefik ask about each request; never reachable for browsers.'
  },
  'forwardAuth.host': {
    env: 'PLATFORM_AUTH_FORWARD_AUTH_HOST',
    type: hostName,
    default: '127.0.0.1',
    summary: 'Host name or address on which gateways are answered.'
  },
  'metrics.port': {
    env: 'PLATFORM_AUTH_METRICS_PORT',
    flag: '--metrics-port <port>',
    type: port,
    default: undefined,
    defaultText: 'off',
    summary: 'Port of the Prometheus metrics.'
  },
  'metrics.host': {
    env: 'PLATFORM_AUTH_METRICS_HOST',
    type: hostName,
    default: '127.0.0.1',
    summary: 'Host name or address the metrics listen on.'
  },
  'shutdown.delaySeconds': {
    env: 'PLATFORM_AUTH_SHUTDOWN_DELAY',
    type: seconds(0, 300),
    default: 0,
    summary: 'How long a stopping server goes on serving while /readyz already answers 503.'
  },
  'shutdown.graceSeconds': {
    env: 'PLATFORM_AUTH_SHUTDOWN_GRACE',
    type: seconds(0, 300),
    // Two provider calls of platform.timeoutSeconds, which is one renewal in dual mode, and a little.
    default: 25,
    summary: 'How long a stopping server waits for requests under way.'
  }
} as const satisfies Record<string, Setting>

export type SettingKey = keyof typeof settings

type Group = SettingKey extends infer Key ? (Key extends `${infer Name}.${string}` ? Name : never) : never
type Member<Name extends Group> = Extract<SettingKey, `${Name}.${string}`> extends `${Name}.${infer Key}` ? Key : never
type TopKey = Exclude<SettingKey, `${string}.${string}`>

type Row<Key extends SettingKey> = (typeof settings)[Key]
type ValueOf<Key extends string> = Key extends SettingKey
  ? Row<Key> extends { type: ValueType<infer Value>; default: infer Default }
    ? Default extends undefined
      ? Value | undefined
      : Value
    : never
  : never

/**
 * What the rest of the server gets: every value checked, every default filled in, `undefined` where a setting without
 * default was not given. The names are the keys of the table, with the part before the dot as a group.
 */
export type Config = { readonly [Key in TopKey]: ValueOf<Key> } & {
  readonly [Name in Group]: { readonly [Key in Member<Name>]: ValueOf<`${Name}.${Key}`> }
}

/** The same without groups, by key; what was refused or required and not given is missing. */
export type Values = { readonly [Key in SettingKey]?: ValueOf<Key> }

/** Some of the settings, as a program gives them; `null` takes the default whatever the environment or a file says. */
export type Overrides = { readonly [Key in TopKey]?: ValueOf<Key> | null } & {
  readonly [Name in Group]?: { readonly [Key in Member<Name>]?: ValueOf<`${Name}.${Key}`> | null }
}

export const settingKeys = Object.keys(settings) as readonly SettingKey[]

/** A row seen with its general type, for code that walks the whole table. */
export function settingOf(key: SettingKey): Setting {
  return settings[key]
}

export function isSettingKey(key: string): key is SettingKey {
  return Object.hasOwn(settings, key)
}

/** The names of the groups, in the order of the table. */
export const groups = [
  ...new Set(settingKeys.flatMap(key => (key.includes('.') ? [key.slice(0, key.indexOf('.'))] : [])))
]

/** How the reference, `--help` and the editor name the default. */
export function defaultText(key: SettingKey): string {
  const { default: value, defaultText } = settingOf(key)
  if (defaultText !== undefined) return defaultText
  if (value === required) return 'required'
  if (value === undefined) return 'none'
  return Array.isArray(value) ? value.join(' ') : String(value)
}
