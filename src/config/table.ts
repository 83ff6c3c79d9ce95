import { accessEntries } from './types/access-entry.js'
import { listenAddress } from './types/address.js'
import { clientKey } from './types/client-key.js'
import {
  certificates,
  existingFolder,
  folder,
  keyFile,
  logo,
  pagesFolder,
  scriptModule
} from './types/existing-path.js'
import { csrfHeaderName, requestHeaderNames, responseHeaderNames } from './types/header-names.js'
import { authorizationParams, logoutParams } from './types/params.js'
import { filePatterns } from './types/protected-files.js'
import { proxyRules, ruleTimeout } from './types/proxy-rules.js'
import { redisUrl } from './types/redis-url.js'
import { clientId, clientSecret, sessionSecret, sessionSecrets } from './types/secrets.js'
import { required, type Setting } from './types/setting.js'
import { DAY, duration, GIB, HOUR, MIB, MINUTE, size } from './types/units.js'
import { callbackUrl, issuerUrl, optionalProviderUrl, providerUrl } from './types/urls.js'
import { integer, itemsOf, list, oneOf, port, string, type ValueType, yesOrNo } from './types/value-type.js'

/**
 * The table of all settings. The command line, the environment reader, the validation, the JSON Schema and
 * docs/reference/configuration.md are generated from it. To add a setting, add a row.
 */

// RFC 6749 section 3.3.
const scopes = list('scopes separated by spaces', /^[\x21\x23-\x5b\x5d-\x7e]+$/)
const optionalScopes: typeof scopes = {
  ...scopes,
  allowed: `${scopes.allowed}, or an empty string`,
  json: { ...scopes.json, minItems: 0 },
  parse: written => (itemsOf(written)?.length === 0 ? { value: [] } : scopes.parse(written))
}
const hostName = string('a host name or an IP address', /^[A-Za-z0-9.:%_-]+$/)
// A path below wwwroot. Files whose name begins with a dot are not served.
const pathInside = /^(?!\.)[^\s/\\?#%]+(\/(?!\.)[^\s/\\?#%]+)*$/
const fromProvider = 'from APS or from the discovery document'
const endpoint = { type: providerUrl, defaultText: fromProvider } as const
const optionalEndpoint = { type: optionalProviderUrl, defaultText: fromProvider } as const

// With https, the server adds the prefix `__Host-` to the cookie name, so the setting may contain or omit this prefix. Other
// prefixes of this form, such as `__Secure-`, are rejected in any letter case. Browsers ignore the case of these prefixes, and
// they reject a cookie with such a prefix if the connection does not use https (RFC 6265bis section 5.7).
const anyCookieName = string(
  'a name of up to 64 letters, digits, dots, underscores and hyphens, without a prefix such as __Secure-',
  /^(__Host-)?(?!__[A-Za-z]+-)[A-Za-z0-9._-]{1,64}$/
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
    flag: '--mode <mode>',
    type: oneOf('single', 'dual'),
    default: 'single',
    summary:
      'Choose "single" for one access token, which stays on the server, or "dual" for a second, public token with fewer scopes, which pages can read.'
  },
  port: {
    env: 'PORT',
    flag: '--port <port>',
    shortFlag: '-p',
    type: port,
    default: 8080,
    summary: 'Listen on this port. With 0, the system chooses a free port.'
  },
  host: {
    flag: '--host <host>',
    type: hostName,
    defaultText: 'all interfaces',
    summary: 'Listen on this host name or IP address.'
  },
  keepAlive: {
    type: duration(1, HOUR),
    default: 75,
    summary: 'Keep an idle connection open for this time, which must be longer than that of the load balancer.'
  },
  wwwroot: {
    defaultFrom: ({ cwd }) => existingFolder(cwd, 'wwwroot'),
    flag: '--wwwroot <folder>',
    type: folder,
    defaultText: './wwwroot if it exists, otherwise the packaged starter page',
    summary: 'Serve the static files of this folder, relative to the working directory.'
  },
  fallback: {
    flag: '--fallback <file>',
    type: string('a file of wwwroot, such as index.html', pathInside),
    summary: 'Serve this file when a browser opens a URL that has no file. Single-page applications need this.'
  },
  hashedAssets: {
    flag: '--hashed-assets <folders>',
    type: list('folders of wwwroot separated by spaces, such as assets', pathInside),
    summary: 'Let browsers cache the files of these folders for a year. Their names must change with their content.'
  },
  extension: {
    privateFile: 'code',
    flag: '--extension <file>',
    type: scriptModule,
    summary: 'Add the custom routes that the default export of this module defines.'
  },
  'session.secret': {
    env: 'SERVER_SESSION_SECRET',
    flag: '--session-secret-file <file>',
    type: sessionSecret,
    default: required,
    secret: true,
    summary: 'Encrypt the session cookie with this secret.'
  },
  'session.previousSecrets': {
    severalLines: true,
    env: 'SERVER_SESSION_PREVIOUS_SECRETS',
    type: sessionSecrets,
    default: [],
    secret: true,
    summary: 'Accept sessions that were encrypted with these earlier secrets.'
  },
  'session.inactivityTimeout': {
    // Browsers keep no cookie longer than 400 days (RFC 6265bis section 5.5).
    type: duration(1, 400 * DAY),
    default: DAY,
    summary: 'End a session this long after its login, its last refresh, or its last change by a custom route.'
  },
  'session.maxLifetime': {
    // If a browser logs in again within 60 seconds and sends no session cookie, the server assumes a login loop: the
    // browser does not keep the cookie, so the page starts one login after another. If a session could end in less than
    // 60 seconds, an ordinary second login would also be treated as a loop.
    type: duration(MINUTE, 3650 * DAY),
    summary: 'End a session this long after its login, even if it was refreshed.'
  },
  'session.store': {
    flag: '--session-store <store>',
    type: oneOf('cookie', 'redis'),
    default: 'cookie',
    summary:
      'Store the encrypted sessions in cookies (up to 15 kB) or in Redis (tokens of up to 250 kB). With "redis", users are signed out if Redis loses its data, and get 503 while it is unavailable.'
  },
  'session.cookieName': {
    type: cookieName,
    default: 'platform_session',
    summary: 'Give the session cookie this name.'
  },
  'platform.clientId': {
    tutorialEnv: 'APS_CLIENT_ID',
    flag: '--client-id <id>',
    type: clientId,
    default: required,
    summary: 'Identify the application with this OAuth client id.'
  },
  'platform.clientSecret': {
    // A client that authenticates with a private key needs no client secret. An unknown method may be a misspelt private_key_jwt, so
    // only the method is reported, and the missing secret is not.
    defaultFrom: ({ value, isGiven }) => {
      const method = value('platform.clientAuthMethod')
      if (!isGiven('platform.clientAuthMethod')) return isGiven('platform.clientKey') ? '' : required
      return /^client_secret_/.test(String(method)) ? required : ''
    },
    tutorialEnv: 'APS_CLIENT_SECRET',
    flag: '--client-secret-file <file>',
    type: clientSecret,
    default: required,
    secret: true,
    summary: 'Authenticate the application with this OAuth client secret, unless there is a platform.clientKey.'
  },
  'platform.clientKey': {
    severalLines: true,
    flag: '--client-key-file <file>',
    type: clientKey,
    secret: true,
    summary: 'Authenticate the application with this private key instead of a secret.'
  },
  'platform.clientKeyId': {
    type: string('the key id (kid) as the provider shows it', /^[\x20-\x7e]+$/),
    defaultText: 'the kid of the JWK',
    summary: 'Name the public key of platform.clientKey with this key id.'
  },
  'platform.callbackUrl': {
    tutorialEnv: 'APS_CALLBACK_URL',
    flag: '--callback-url <url>',
    type: callbackUrl,
    default: required,
    summary: 'Let the provider send the browser to this public URL after a login. Register exactly this URL there.'
  },
  'platform.scopes': {
    flag: '--scopes <scopes>',
    type: optionalScopes,
    keepsEmpty: true,
    default: ['data:read', 'account:read', 'account:write'],
    summary: 'Request these scopes for the access token (single mode), or no scope if it is empty.'
  },
  'platform.internalTokenScopes': {
    env: 'INTERNAL_TOKEN_SCOPES',
    flag: '--internal-token-scopes <scopes>',
    type: scopes,
    default: ['data:read', 'viewables:read'],
    summary: 'Request these scopes for the token that stays on the server (dual mode).'
  },
  'platform.publicTokenScopes': {
    env: 'PUBLIC_TOKEN_SCOPES',
    flag: '--public-token-scopes <scopes>',
    type: scopes,
    default: ['viewables:read'],
    summary:
      'Request these scopes, which must also be in platform.internalTokenScopes, for the token for pages (dual mode).'
  },
  'platform.issuer': {
    flag: '--issuer <url>',
    type: issuerUrl,
    summary:
      'Use the identity provider with this issuer and discovery document, instead of Autodesk Platform Services (APS).'
  },
  'platform.authorizationEndpoint': {
    ...endpoint,
    summary: 'Send the browser to this URL for a login.'
  },
  'platform.tokenEndpoint': {
    ...endpoint,
    summary: 'Exchange a code or a refresh token for new tokens at this URL.'
  },
  'platform.userinfoEndpoint': {
    ...optionalEndpoint,
    summary: 'Read the display name of a user from this URL. With "none", it comes from the ID token (scope "openid").'
  },
  'platform.revocationEndpoint': {
    ...optionalEndpoint,
    summary: 'Revoke the refresh token at this URL during a logout. With "none", a logout revokes nothing.'
  },
  'platform.endSessionEndpoint': {
    ...optionalEndpoint,
    summary: 'Send the browser to this logout page of the provider, if logout.idp is on.'
  },
  'platform.backchannelLogout': {
    defaultFrom: ({ value }) => {
      const scopes = value(value('mode') === 'dual' ? 'platform.internalTokenScopes' : 'platform.scopes')
      return value('platform.issuer') !== undefined && Array.isArray(scopes) && scopes.includes('openid')
    },
    type: yesOrNo,
    default: false,
    defaultText: 'true with platform.issuer and the scope openid, otherwise false',
    summary:
      'Let the provider end sessions at POST /api/auth/backchannel-logout, and let users end all their sessions with /api/auth/logout?everywhere=true. This needs platform.issuer and the scope "openid".'
  },
  'platform.clientAuthMethod': {
    defaultFrom: ({ isGiven }) => (isGiven('platform.clientKey') ? 'private_key_jwt' : 'client_secret_basic'),
    type: oneOf('client_secret_basic', 'client_secret_post', 'private_key_jwt'),
    default: 'client_secret_basic',
    defaultText: 'private_key_jwt with platform.clientKey, otherwise client_secret_basic',
    summary:
      'Authenticate at the token endpoint with the client secret in a header or in the body, or with a JWT that platform.clientKey signs.'
  },
  'platform.pkce': {
    type: yesOrNo,
    default: true,
    summary: 'Use PKCE (RFC 7636). Switch it off only if the provider rejects it.'
  },
  'platform.authorizationParams': {
    type: authorizationParams,
    summary:
      'Add these parameters to each login at the provider, such as audience=https://api.example. With acr_values, also set access.acr. With prompt=login, users can choose a different account each time.'
  },
  'platform.logoutParams': {
    type: logoutParams,
    summary: 'Add these parameters to each logout at the provider, if logout.idp is on.'
  },
  'platform.timeout': {
    // A token request must end before its lease does.
    type: duration(1, MINUTE),
    default: 10,
    summary: 'Wait at most this long for a response of the identity provider.'
  },
  'refresh.beforeExpiry': {
    type: duration(0, HOUR),
    default: 0,
    summary: 'Refresh a session if its access token expires within this time.'
  },
  'refresh.jitter': {
    type: duration(0, HOUR),
    default: 0,
    summary:
      'Refresh each session earlier by a random time up to this, in addition to refresh.beforeExpiry, so that sessions that began together are refreshed at different times.'
  },
  'profile.cacheTtl': {
    type: duration(0, HOUR),
    default: 0,
    summary: 'Cache the profile of a session for this time. With 0, every request for the profile calls the provider.'
  },
  'access.allow': {
    resembledBy: /ALLOW|^PLATFORM_AUTH_ACCESS(?!\w*FILE)/,
    type: accessEntries,
    defaultText: 'everyone, with a warning',
    rejectsEmpty: true,
    summary:
      'Let only users who match one of these entries sign in, or everyone with "*". An e-mail address counts only if the provider has verified it.'
  },
  'access.acr': {
    type: list('levels such as mfa, separated by spaces', /^[!-~]{1,200}$/),
    rejectsEmpty: true,
    summary:
      'Let users sign in only with one of these authentication levels (the claim acr of the ID token). Request it with acr_values in platform.authorizationParams.'
  },
  'access.files': {
    resembledBy: /^PLATFORM_AUTH_ACCESS\w*FILE/,
    flag: '--access-files <patterns>',
    type: filePatterns,
    defaultText: 'none, so all files are public',
    rejectsEmpty: true,
    summary:
      'Serve the files of wwwroot that match these path patterns only to users who are signed in. The first match decides, and ! means public.'
  },
  'logout.revoke': {
    type: yesOrNo,
    default: true,
    summary: 'Revoke the refresh token at the provider during a logout.'
  },
  'logout.idp': {
    flag: '--logout-idp',
    type: yesOrNo,
    default: false,
    summary: 'Sign the user out at the provider, too, so that the next login asks who is signing in.'
  },
  'apiProxy.rules': {
    severalLines: true,
    flag: '--api-proxy <rule>',
    type: proxyRules,
    default: [],
    summary: 'Forward requests that match these rules to an API, with an access token of the session.'
  },
  'apiProxy.requestHeaders': {
    type: requestHeaderNames,
    // Some APIs of APS need this header to select a region. No API needs an additional response header.
    default: ['region'],
    summary: 'Forward these request headers in addition to the built-in list.'
  },
  'apiProxy.responseHeaders': {
    type: responseHeaderNames,
    default: [],
    summary: 'Forward these response headers in addition to the built-in list.'
  },
  'apiProxy.timeout': {
    type: ruleTimeout,
    default: 60,
    summary: "Wait at most this long for the next part of an upstream's response."
  },
  'apiProxy.maxBody': {
    type: size(0, 1024 * GIB),
    default: 100 * MIB,
    summary: 'Reject a request to the API proxy if its body is larger than this.'
  },
  'apiProxy.csrfHeader': {
    type: csrfHeaderName,
    summary: 'Require this header in every request to the API proxy, because pages of other sites cannot add it.'
  },
  'redis.url': {
    flag: '--redis-url <url>',
    type: redisUrl,
    secret: true,
    summary:
      'Coordinate refreshes and share logouts between replicas with the Redis server at this URL. A single process needs no Redis.'
  },
  'redis.caFile': {
    type: certificates,
    defaultText: 'the authorities that Node trusts',
    summary: 'Trust these authorities to sign the certificate of Redis.'
  },
  'redis.certFile': {
    type: certificates,
    summary: 'Authenticate at Redis with this client certificate.'
  },
  'redis.keyFile': {
    privateFile: 'secret',
    type: keyFile,
    summary: 'Use this private key for redis.certFile.'
  },
  'redis.serverName': {
    type: hostName,
    defaultText: 'the host of each connection',
    summary:
      'Require a certificate of Redis for this name, for example if the nodes of a cluster announce IP addresses.'
  },
  'log.level': {
    flag: '--log-level <level>',
    type: oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    default: 'info',
    summary: 'Log events of this level and of more severe levels.'
  },
  'log.format': {
    flag: '--log-format <format>',
    type: oneOf('auto', 'json', 'text'),
    default: 'auto',
    summary: 'Write log lines as JSON or as readable text. "auto" is text on a terminal, and JSON otherwise.'
  },
  'log.requests': {
    flag: '--log-requests',
    type: yesOrNo,
    default: false,
    summary: 'Log every request, except successful requests for /healthz and /readyz.'
  },
  'log.trustForwardedFor': {
    type: integer(0, 20, 'a number of proxies'),
    default: 0,
    summary:
      'Log the client address from X-Forwarded-For, to which this number of proxies add one address each. With 0, log the address of the connection.'
  },
  'branding.name': {
    type: string('a name of up to 80 characters', /^\S(?:.{0,78}\S)?$/),
    summary: 'Show this name of your application on the pages of this server, such as error pages.'
  },
  'branding.logo': {
    type: logo,
    summary: 'Show this logo on the pages of this server. Screen readers read branding.name instead.'
  },
  'branding.color': {
    type: string('a colour such as "#1d5fc2", in quotation marks', /^#(?:[0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$/),
    defaultText: 'a blue',
    rejectsEmpty: true,
    summary: 'Give the buttons and links on the pages of this server this colour.'
  },
  'branding.folder': {
    type: pagesFolder,
    summary: 'Use the custom texts, languages and templates in this folder for the pages of this server.'
  },
  'forwardAuth.address': {
    flag: '--forward-auth-address <address>',
    type: listenAddress,
    defaultText: 'off',
    summary:
      'Listen on this address for a gateway that asks if a user is signed in (forward-auth). Browsers must not reach it, because the responses contain tokens.'
  },
  'metrics.address': {
    flag: '--metrics-address <address>',
    type: listenAddress,
    defaultText: 'off',
    summary: 'Offer metrics for Prometheus at this address.'
  },
  'shutdown.delay': {
    type: duration(0, 5 * MINUTE),
    default: 0,
    summary: 'During shutdown, serve requests for this time, while /readyz already responds with 503.'
  },
  'shutdown.grace': {
    type: duration(0, 5 * MINUTE),
    // A refresh in dual mode makes up to two calls to the provider. With the default of platform.timeout, they
    // take at most 20 seconds, so 5 seconds remain.
    default: 25,
    summary: 'During shutdown, wait at most this long for requests in progress.'
  }
} as const satisfies Record<string, Setting>
