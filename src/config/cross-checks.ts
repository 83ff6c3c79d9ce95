import { createPrivateKey, X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { readTextFile, statIfPossible } from '../base/text-file.js'
import { publishedFiles } from './private-files.js'
import { type SettingKey, STARTER_PAGE, type Values } from './settings.js'
import type { PrivateFile, SettingsFinding } from './sources/layer.js'
import { isClaimEntry } from './types/access-entry.js'
import { MAX_AGE } from './types/params.js'
import { quote } from './types/problem.js'
import { maskRule } from './types/proxy-rules.js'
import { isLoopback } from './types/urls.js'
import { whyNoFile } from './wwwroot.js'

// The checks that involve several settings. Each value has already been checked alone. If a value that a check needs is
// missing, the check finds nothing.

/** Without a source, the finding has that of the setting. */
type CrossFinding = Omit<SettingsFinding, 'source'> & Partial<SettingsFinding>

/** True if a source sets the setting, false if it has its default. */
type IsGiven = (key: SettingKey) => boolean
type SettingsCheck = (
  values: Values,
  isGiven: IsGiven,
  privateFiles: readonly PrivateFile[]
) => Iterable<CrossFinding> | AsyncIterable<CrossFinding>

export async function* findings(...settings: Parameters<SettingsCheck>): AsyncGenerator<CrossFinding> {
  for (const check of checks) yield* check(...settings)
}

/** The tag of a message, which begins with the key of its setting. */
function problem({ raw }: TemplateStringsArray, ...values: readonly unknown[]): CrossFinding {
  const [key = '', ...words] = String.raw({ raw }, ...values).split(' ')
  return { key, message: words.join(' ') }
}

function warning(texts: TemplateStringsArray, ...values: readonly unknown[]): CrossFinding {
  return { ...problem(texts, ...values), isWarning: true }
}

const redisTlsKeys = ['redis.caFile', 'redis.certFile', 'redis.keyFile', 'redis.serverName'] as const

const checks: readonly SettingsCheck[] = [
  function* publicScopesAreInternalToo(values) {
    const { mode, 'platform.publicTokenScopes': publicScopes, 'platform.internalTokenScopes': internalScopes } = values
    if (mode !== 'dual' || !publicScopes || !internalScopes) return
    const key = 'platform.publicTokenScopes'
    const extra = publicScopes.filter(scope => !internalScopes.includes(scope))
    // The public token comes from a refresh, and a refresh cannot add scopes to those of the login (RFC 6749 section 6).
    if (extra.length > 0)
      yield problem`${key} contains ${extra.join(' ')}, which the internal token lacks. Use only scopes of platform.internalTokenScopes (${internalScopes.join(' ')}).`
    else if (internalScopes.every(scope => publicScopes.includes(scope)))
      yield warning`${key} has the same scopes as platform.internalTokenScopes, so pages have the same access as the server.`
  },

  // A setting that is given was meant to have an effect.
  function* settingsHaveAnEffect({ mode, 'platform.clientAuthMethod': method, ...values }, isGiven) {
    const revokesNothing = values['logout.revoke'] === true && values['platform.revocationEndpoint'] === 'none'
    const usesNoKey = method !== undefined && method !== 'private_key_jwt'
    const reasons: readonly (readonly [applies: boolean, reason: string, keys: readonly SettingKey[]])[] = [
      [mode === 'single', 'mode is single', ['platform.internalTokenScopes', 'platform.publicTokenScopes']],
      [mode === 'dual', 'mode is dual', ['platform.scopes']],
      [usesNoKey, `platform.clientAuthMethod is ${method}`, ['platform.clientKey']],
      [revokesNothing, 'platform.revocationEndpoint is none', ['logout.revoke']],
      [!isGiven('redis.url'), 'redis.url is not set', redisTlsKeys]
    ]
    for (const [applies, reason, keys] of reasons)
      for (const key of applies ? keys.filter(isGiven) : []) yield warning`${key} has no effect, because ${reason}.`
  },

  function* callbackOverPlainHttp({ 'platform.callbackUrl': url }) {
    if (url && !isTrustworthy(url))
      yield warning`platform.callbackUrl uses plain http on another machine, so others on the network can read codes and cookies, and browsers reject __Host- cookies. Use https.`
  },

  function* logoutNeedsItsEndpoint(values) {
    if (values['logout.idp'] && values['platform.endSessionEndpoint'] === 'none')
      yield problem`logout.idp is on, but platform.endSessionEndpoint is none. Set logout.idp to false.`
  },

  function* paramsAreNotInTheUrl(values) {
    for (const [key, endpointKey] of [
      ['platform.authorizationParams', 'platform.authorizationEndpoint'],
      ['platform.logoutParams', 'platform.endSessionEndpoint']
    ] as const) {
      const url = values[endpointKey]
      const query = url && url !== 'none' ? [...new URL(url).searchParams.keys()].map(name => name.toLowerCase()) : []
      const name = Object.keys(values[key] ?? {}).find(param => query.includes(param.toLowerCase()))
      if (name !== undefined)
        yield problem`${key} contains ${name}, which the URL of ${endpointKey} has too. Remove one.`
    }
  },

  // A logout token names the issuer, and the `sub` or `sid` of an ID token (OpenID Connect Back-Channel Logout section
  // 2.4), so each login needs an ID token.
  function* backchannelLogoutNeedsOpenid(values) {
    const { mode, 'platform.backchannelLogout': isOn, 'platform.issuer': issuer } = values
    const key = 'platform.backchannelLogout'
    if (!isOn || !mode) return
    const login = loginScopesOf(values)
    if (issuer === undefined)
      yield problem`${key} is on without platform.issuer, but the server needs the issuer to find the keys of the provider, with which it checks logout tokens. Set platform.issuer.`
    else if (login.scopes && !login.scopes.includes('openid'))
      yield problem`${key} is on, but ${login.key} does not contain openid, so the server does not know to whom a session belongs. Add openid to ${login.key}.`
  },

  function* everyoneMaySignIn({ 'platform.clientId': clientId }, isGiven) {
    if (clientId !== undefined && !isGiven('access.allow'))
      yield warning`access.allow is not set, so every account of the identity provider may sign in. Set it to e-mail addresses, domains or claims, or to "*" to allow every account.`
  },

  // Only an ID token says how and when a user has signed in.
  function* authenticationNeedsAnIdToken(values) {
    const { key: scopesKey, scopes } = loginScopesOf(values)
    const { 'access.acr': acr, 'platform.authorizationParams': params = {} } = values
    if (!scopes) return
    const unanswered = `, but ${scopesKey} does not contain openid, so the provider sends no ID token, and no user could sign in. Add openid to ${scopesKey}.`
    const hasIdToken = scopes.includes('openid')
    if (acr && !hasIdToken) yield problem`access.acr is set${unanswered}`
    if (MAX_AGE in params && !hasIdToken) yield problem`platform.authorizationParams contains ${MAX_AGE}${unanswered}`
    if (!acr && 'acr_values' in params)
      yield warning`platform.authorizationParams requests acr_values without access.acr, but a user can remove the parameter, and a provider may ignore it. Set access.acr to the levels that are sufficient.`
  },

  // Without a user info endpoint, the claims can only come from the ID token, and the provider sends an ID token only
  // for the scope openid (OpenID Connect Core sections 3.1.2.1 and 5.4).
  function* accessListNeedsClaims(values) {
    const { 'access.allow': allow, 'platform.userinfoEndpoint': userInfo } = values
    const { key: scopesKey, scopes } = loginScopesOf(values)
    if (!allow?.length || userInfo !== 'none' || !scopes) return
    if (!scopes.includes('openid'))
      yield problem`access.allow is set, but platform.userinfoEndpoint is none and ${scopesKey} does not contain openid, so the server cannot learn who a user is. Add openid and email to ${scopesKey}, or set platform.userinfoEndpoint.`
    else if (!scopes.includes('email') && !allow.every(isClaimEntry))
      yield warning`access.allow reads the e-mail address from the ID token, but ${scopesKey} does not contain email. If the ID token contains no e-mail address, no user can sign in.`
  },

  function* methodHasItsKey({ 'platform.clientAuthMethod': method }, isGiven) {
    if (method === 'private_key_jwt' && !isGiven('platform.clientKey'))
      yield problem`platform.clientAuthMethod is private_key_jwt, but there is no key. Set PLATFORM_CLIENT_KEY_FILE to the path of a private key.`
  },

  function* listenersHaveSeparatePorts({ port, host, ...values }) {
    const listeners = [
      { key: 'port', port, host, name: 'the server itself' },
      { key: 'forwardAuth.address', ...values['forwardAuth.address'], name: 'forward-auth' },
      { key: 'metrics.address', ...values['metrics.address'], name: 'metrics' }
    ] as const
    for (const [index, { key, port, host }] of listeners.entries())
      for (const other of listeners.slice(0, index)) {
        // Without a host, a listener uses its port on all interfaces.
        const sharesHost = other.host === undefined || host === undefined || other.host === host
        // With port 0, each listener gets a different free port.
        if (port && other.port === port && sharesHost)
          yield problem`${key} has the port ${port}, which ${other.name} already uses. Set a different port.`
      }
  },

  function* sessionsInRedisNeedRedis({ 'session.store': store, 'redis.url': url }) {
    if (store === 'redis' && url === undefined)
      yield problem`session.store is redis, but redis.url is not set. Set redis.url, for example to redis://localhost:6379, or set session.store to cookie.`
  },

  function* forwardAuthWithoutRedis({ 'forwardAuth.address': address, 'redis.url': url }) {
    if (address !== undefined && url === undefined)
      yield warning`forwardAuth.address is set without redis.url. A session that was refreshed through a gateway then exists only in this process's memory until its browser requests a path below /api/auth. If the server restarts before this request, the user is signed out.`
  },

  // If a shutdown interrupts a refresh, the old refresh token may already have been used, and the browser does not receive the
  // new token, so the session is lost.
  function* graceCoversARefresh({ mode, 'platform.timeout': timeoutSeconds, 'shutdown.grace': graceSeconds }) {
    if (!mode || timeoutSeconds === undefined || graceSeconds === undefined) return
    const [calls, longest] = mode === 'dual' ? ['two calls', 2 * timeoutSeconds] : ['one call', timeoutSeconds]
    if (graceSeconds < longest)
      yield warning`shutdown.grace is ${graceSeconds}, but a refresh may take ${longest} seconds (${calls} of up to platform.timeout). If a shutdown interrupts a refresh, that user must sign in again.`
  },

  function* publicTokenNeedsDualMode({ mode, 'apiProxy.rules': rules = [] }) {
    for (const { text } of rules.filter(({ token }) => token === 'public' && mode === 'single'))
      yield problem`apiProxy.rules cannot contain the rule ${quote(maskRule(text))}, because it uses the public token, but mode is single. Use token=internal.`
  },

  function* proxyNeedsFetchMetadata({ 'platform.callbackUrl': url, 'apiProxy.rules': rules = [], ...values }) {
    if (rules.length > 0 && values['apiProxy.csrfHeader'] === undefined && url && !isTrustworthy(url))
      yield warning`apiProxy.rules is used over plain http, where browsers do not send the headers that tell which site a request comes from. Use https, or set apiProxy.csrfHeader.`
  },

  // WCAG 2.2, success criterion 1.1.1.
  function* logoNeedsName({ 'branding.logo': logo, 'branding.name': name }) {
    if (logo !== undefined && name === undefined)
      yield problem`branding.logo is set without branding.name, so screen readers cannot tell what the logo shows. Set branding.name.`
  },

  async function* redisTlsIsComplete(values, isGiven) {
    const { 'redis.url': url, 'redis.certFile': certFile, 'redis.keyFile': keyFile } = values
    if (!url) return
    for (const key of url.tls ? [] : redisTlsKeys.filter(isGiven))
      yield problem`${key} is set, but redis.url does not use TLS. Change the beginning of redis.url to rediss://, or remove this setting.`
    if (!url.tls) return
    if (certFile !== undefined && keyFile !== undefined) {
      const [certificate, key] = await Promise.all([readTextFile(certFile), readTextFile(keyFile)])
      if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key)))
        yield problem`redis.keyFile is not the key of the certificate in redis.certFile. Set it to the file with that key.`
    }
    const [given, ...others] = (['redis.certFile', 'redis.keyFile'] as const).filter(isGiven)
    if (given && others.length === 0)
      yield problem`${given} is set without ${given === 'redis.keyFile' ? 'redis.certFile' : 'redis.keyFile'}. Set both or neither.`
  },

  // If wwwroot is invalid, the settings that name a file inside it cannot be checked.
  async function* wwwrootHasTheFallback(values) {
    if (!('wwwroot' in values)) return
    const { wwwroot = STARTER_PAGE, fallback } = values
    if (fallback !== undefined && !(await statIfPossible(join(wwwroot, fallback)))?.isFile())
      yield problem`fallback cannot be the string ${quote(fallback)}, because wwwroot has no such file. Set it to a file of wwwroot, such as index.html.`
  },

  async function* privateFilesArePrivate(values, _isGiven, privateFiles) {
    if ('wwwroot' in values) yield* await publishedFiles(privateFiles, values.wwwroot ?? STARTER_PAGE)
  },

  // A pattern that matches no file is probably wrong, and the files that it was meant for may be public.
  async function* filePatternsMatchFiles({ 'access.files': patterns, ...values }) {
    if (!patterns || !('wwwroot' in values)) return
    const { wwwroot } = values
    if (wwwroot === undefined)
      yield warning`access.files has no effect, because wwwroot is not set. The files of the starter page are always public.`
    else
      for (const pattern of patterns) {
        const why = await whyNoFile(pattern, wwwroot)
        if (why !== undefined) yield warning`access.files contains ${quote(pattern.text)}, but ${why}`
      }
  }
]

/** Returns which setting contains the scopes of a login, and its value. */
function loginScopesOf({ mode, ...values }: Values) {
  const key = mode === 'dual' ? 'platform.internalTokenScopes' : 'platform.scopes'
  return { key, scopes: mode && values[key] } as const
}

// Returns true if browsers send Fetch Metadata to this URL, which they do only for trustworthy URLs (W3C Secure
// Contexts section 3.1).
function isTrustworthy(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || isLoopback(url) || hostname.endsWith('.localhost')
}
