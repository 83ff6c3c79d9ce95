import { createPrivateKey, X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { readTextFile, statIfPossible } from '../base/text-file.js'
import { publishedFiles } from './private-files.js'
import { type SettingKey, STARTER_PAGE, type Values } from './settings.js'
import type { PrivateFile } from './sources/layer.js'
import { isClaimEntry } from './types/access-entry.js'
import { MAX_AGE } from './types/params.js'
import { quote } from './types/problem.js'
import { maskRule } from './types/proxy-rules.js'
import { isLoopback } from './types/urls.js'
import { whyNoFile } from './wwwroot.js'

// The checks that involve several settings. Each value has already been checked alone. If a value that a check needs is
// missing, the check finds nothing.

interface SettingsFinding {
  readonly key: string
  /** The source, if it is not that of the setting. */
  readonly source?: string
  readonly message: string
  readonly isWarning?: true
}

/** True if a source sets the setting, false if it has its default. */
type IsGiven = (key: SettingKey) => boolean
type CheckResult = SettingsFinding | readonly SettingsFinding[] | undefined
type SettingsCheck = (
  values: Values,
  isGiven: IsGiven,
  privateFiles: readonly PrivateFile[]
) => CheckResult | Promise<CheckResult>

export async function findings(
  values: Values,
  isGiven: IsGiven,
  privateFiles: readonly PrivateFile[]
): Promise<SettingsFinding[]> {
  const found = await Promise.all(checks.map(check => check(values, isGiven, privateFiles)))
  return found.flatMap(result => result ?? [])
}

const checks: readonly SettingsCheck[] = [
  function publicScopesAreInternalToo(values) {
    const { mode, 'platform.publicTokenScopes': publicScopes, 'platform.internalTokenScopes': internalScopes } = values
    if (mode !== 'dual' || !publicScopes || !internalScopes) return undefined
    const key = 'platform.publicTokenScopes'
    const extra = publicScopes.filter(scope => !internalScopes.includes(scope))
    // The public token comes from a refresh, and a refresh cannot add scopes to those of the login (RFC 6749 section 6).
    if (extra.length > 0) {
      const allowed = `Use only scopes of platform.internalTokenScopes (${internalScopes.join(' ')}).`
      return { key, message: `contains ${extra.join(' ')}, which the internal token lacks. ${allowed}` }
    }
    if (internalScopes.every(scope => publicScopes.includes(scope))) {
      const message =
        'has the same scopes as platform.internalTokenScopes, so pages have the same access as the server.'
      return { key, isWarning: true, message }
    }
    return undefined
  },

  function scopesOfTheOtherMode({ mode }, isGiven) {
    const ofOtherMode: Record<string, readonly SettingKey[]> = {
      single: ['platform.internalTokenScopes', 'platform.publicTokenScopes'],
      dual: ['platform.scopes']
    }
    const unused = (ofOtherMode[mode ?? ''] ?? []).filter(isGiven)
    return unused.map(key => ({ key, isWarning: true, message: `has no effect, because mode is ${mode}.` }))
  },

  function callbackOverPlainHttp({ 'platform.callbackUrl': url }) {
    if (!url || isTrustworthy(url)) return undefined
    const message =
      'uses plain http on another machine, so others on the network can read codes and cookies, and browsers reject __Host- cookies. Use https.'
    return { key: 'platform.callbackUrl', isWarning: true, message }
  },

  function logoutNeedsItsEndpoint(values, isGiven) {
    const { 'platform.endSessionEndpoint': endSession, 'platform.revocationEndpoint': revocation } = values
    if (values['logout.idp'] && endSession === 'none') {
      return { key: 'logout.idp', message: 'is on, but platform.endSessionEndpoint is none. Set logout.idp to false.' }
    }
    const key = 'logout.revoke'
    if (values[key] && isGiven(key) && revocation === 'none') {
      return { key, isWarning: true, message: 'has no effect, because platform.revocationEndpoint is none.' }
    }
    return undefined
  },

  function paramsAreNotInTheUrl(values) {
    const pairs = [
      ['platform.authorizationParams', 'platform.authorizationEndpoint'],
      ['platform.logoutParams', 'platform.endSessionEndpoint']
    ] as const
    return pairs.flatMap(([key, endpointKey]) => {
      const url = values[endpointKey]
      if (url === undefined || url === 'none') return []
      const query = [...new URL(url).searchParams.keys()].map(name => name.toLowerCase())
      const name = Object.keys(values[key] ?? {}).find(param => query.includes(param.toLowerCase()))
      return name === undefined
        ? []
        : [{ key, message: `contains ${name}, which the URL of ${endpointKey} has too. Remove one.` }]
    })
  },

  // APS rejects a login without scopes, and an empty variable is often meant as one that is not set.
  function scopesAreEmpty({
    mode,
    'platform.scopes': scopes,
    'platform.issuer': issuer,
    'platform.tokenEndpoint': url
  }) {
    if (mode !== 'single' || scopes?.length !== 0 || issuer !== undefined || url !== undefined) return undefined
    const message = 'is empty, so logins request no scope. Remove the setting to request the default scopes.'
    return { key: 'platform.scopes', isWarning: true, message }
  },

  // A logout token names the issuer, and the `sub` or `sid` of an ID token (OpenID Connect Back-Channel Logout section
  // 2.4), so each login needs an ID token.
  function backchannelLogoutNeedsOpenid(values) {
    const { mode, 'platform.backchannelLogout': isOn, 'platform.issuer': issuer } = values
    const key = 'platform.backchannelLogout'
    if (!isOn || !mode) return undefined
    if (issuer === undefined) {
      const reason = 'the server needs the issuer to find the keys of the provider, with which it checks logout tokens'
      return { key, message: `is on without platform.issuer, but ${reason}. Set platform.issuer.` }
    }
    const login = loginScopesOf(values)
    if (!login.scopes || login.scopes.includes('openid')) return undefined
    const found = `is on, but ${login.key} does not contain openid, so the server does not know to whom a session belongs`
    return { key, message: `${found}. Add openid to ${login.key}.` }
  },

  function everyoneMaySignIn({ 'platform.clientId': clientId }, isGiven) {
    const key = 'access.allow'
    if (clientId === undefined || isGiven(key)) return undefined
    const message =
      'is not set, so every account of the identity provider may sign in. Set it to e-mail addresses, domains or claims, or to "*" to allow every account.'
    return { key, isWarning: true, message }
  },

  // Only an ID token says how and when a user has signed in.
  function authenticationNeedsAnIdToken(values) {
    const { key: scopesKey, scopes } = loginScopesOf(values)
    const { 'access.acr': acr, 'platform.authorizationParams': params = {} } = values
    if (!scopes) return undefined
    const wanted: readonly (readonly [key: SettingKey, isChecked: boolean, name: string])[] = [
      ['access.acr', acr !== undefined, 'is set'],
      ['platform.authorizationParams', MAX_AGE in params, `contains ${MAX_AGE}`]
    ]
    const unanswered = wanted.flatMap(([key, isChecked, name]) => {
      const message = `${name}, but ${scopesKey} does not contain openid, so the provider sends no ID token, and no user could sign in. Add openid to ${scopesKey}.`
      return isChecked && !scopes.includes('openid') ? [{ key, message }] : []
    })
    if (acr || !('acr_values' in params)) return unanswered
    const message =
      'requests acr_values without access.acr, but a user can remove the parameter, and a provider may ignore it. Set access.acr to the levels that are sufficient.'
    return [...unanswered, { key: 'platform.authorizationParams', isWarning: true, message }]
  },

  // Without a user info endpoint, the claims can only come from the ID token, and the provider sends an ID token only
  // for the scope openid (OpenID Connect Core sections 3.1.2.1 and 5.4).
  function accessListNeedsClaims(values) {
    const { 'access.allow': allow, 'platform.userinfoEndpoint': userInfo } = values
    const { key: scopesKey, scopes } = loginScopesOf(values)
    if (!allow?.length || userInfo !== 'none' || !scopes) return undefined
    const key = 'access.allow'
    if (!scopes.includes('openid')) {
      const found = `is set, but platform.userinfoEndpoint is none and ${scopesKey} does not contain openid, so the server cannot learn who a user is`
      return { key, message: `${found}. Add openid and email to ${scopesKey}, or set platform.userinfoEndpoint.` }
    }
    if (scopes.includes('email') || allow.every(isClaimEntry)) return undefined
    const message = `reads the e-mail address from the ID token, but ${scopesKey} does not contain email. If the ID token contains no e-mail address, no user can sign in.`
    return { key, isWarning: true, message }
  },

  function keyFitsTheMethod({ 'platform.clientAuthMethod': method }, isGiven) {
    const hasKey = isGiven('platform.clientKey')
    if (method === undefined || hasKey === (method === 'private_key_jwt')) return undefined
    if (hasKey) {
      const message = `has no effect, because platform.clientAuthMethod is ${method}.`
      return { key: 'platform.clientKey', isWarning: true, message }
    }
    const message =
      'is private_key_jwt, but there is no key. Set PLATFORM_CLIENT_KEY_FILE to the path of a private key.'
    return { key: 'platform.clientAuthMethod', message }
  },

  function listenersHaveSeparatePorts(values) {
    const { port, host, 'forwardAuth.address': forwardAuth, 'metrics.address': metrics } = values
    const listeners = [
      { key: 'port', port, host, name: 'the server itself' },
      { key: 'forwardAuth.address', ...forwardAuth, name: 'forward-auth' },
      { key: 'metrics.address', ...metrics, name: 'metrics' }
    ] as const
    return listeners.flatMap(({ key, port, host }, index) => {
      // With port 0, each listener gets a different free port, so there is no conflict. Without a host, a listener uses
      // its port on all interfaces.
      const isTaken = (other: (typeof listeners)[number]) =>
        port && other.port === port && (other.host === undefined || host === undefined || other.host === host)
      return listeners
        .slice(0, index)
        .filter(isTaken)
        .map(({ name }) => ({
          key,
          message: `has the port ${port}, which ${name} already uses. Set a different port.`
        }))
    })
  },

  function sessionsInRedisNeedRedis({ 'session.store': store, 'redis.url': url }) {
    if (store !== 'redis' || url !== undefined) return undefined
    const message =
      'is redis, but redis.url is not set. Set redis.url, for example to redis://localhost:6379, or set session.store to cookie.'
    return { key: 'session.store', message }
  },

  function forwardAuthWithoutRedis({ 'forwardAuth.address': address, 'redis.url': url }) {
    if (address === undefined || url !== undefined) return undefined
    const message =
      "is set without redis.url. A session that was refreshed through a gateway then exists only in this process's memory until its browser requests a path below /api/auth. If the server restarts before this request, the user is signed out."
    return { key: 'forwardAuth.address', isWarning: true, message }
  },

  // If a shutdown interrupts a refresh, the old refresh token may already have been used, and the browser does not receive the
  // new token, so the session is lost.
  function graceCoversARefresh(values) {
    const { mode, 'platform.timeout': timeoutSeconds, 'shutdown.grace': graceSeconds } = values
    if (!mode || timeoutSeconds === undefined || graceSeconds === undefined) return undefined
    const [calls, longest] = mode === 'dual' ? ['two calls', 2 * timeoutSeconds] : ['one call', timeoutSeconds]
    if (graceSeconds >= longest) return undefined
    const duration = `a refresh may take ${longest} seconds (${calls} of up to platform.timeout)`
    const message = `is ${graceSeconds}, but ${duration}. If a shutdown interrupts a refresh, that user must sign in again.`
    return { key: 'shutdown.grace', isWarning: true, message }
  },

  function publicTokenNeedsDualMode({ mode, 'apiProxy.rules': proxyRules = [] }) {
    const unusable = proxyRules.filter(({ token }) => token === 'public' && mode === 'single')
    return unusable.map(({ text }) => ({
      key: 'apiProxy.rules',
      message: `cannot contain the rule ${quote(maskRule(text))}, because it uses the public token, but mode is single. Use token=internal.`
    }))
  },

  function proxyNeedsFetchMetadata(values) {
    const { 'platform.callbackUrl': url, 'apiProxy.rules': proxyRules = [], 'apiProxy.csrfHeader': csrfHeader } = values
    if (proxyRules.length === 0 || csrfHeader !== undefined || !url || isTrustworthy(url)) return undefined
    const message =
      'is used over plain http, where browsers do not send the headers that tell which site a request comes from. Use https, or set apiProxy.csrfHeader.'
    return { key: 'apiProxy.rules', isWarning: true, message }
  },

  // WCAG 2.2, success criterion 1.1.1.
  function logoNeedsName({ 'branding.logo': logo, 'branding.name': name }) {
    if (logo === undefined || name !== undefined) return undefined
    const message =
      'is set without branding.name, so screen readers cannot tell what the logo shows. Set branding.name.'
    return { key: 'branding.logo', message }
  },

  async function redisTlsNeedsRedis(values, isGiven) {
    const { 'redis.url': redisUrl, 'redis.certFile': certFile, 'redis.keyFile': keyFile } = values
    const all = ['redis.caFile', 'redis.certFile', 'redis.keyFile', 'redis.serverName'] as const
    const given = all.filter(isGiven)
    if (!isGiven('redis.url')) {
      return given.map(key => ({ key, isWarning: true, message: 'has no effect, because redis.url is not set.' }))
    }
    if (redisUrl && !redisUrl.tls) {
      const message =
        'is set, but redis.url does not use TLS. Change the beginning of redis.url to rediss://, or remove this setting.'
      return given.map(key => ({ key, message }))
    }
    if (certFile !== undefined && keyFile !== undefined) {
      const [certificate, key] = await Promise.all([readTextFile(certFile), readTextFile(keyFile)])
      if (new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) return undefined
      const message = `is not the key of the certificate in redis.certFile. Set it to the file with that key.`
      return { key: 'redis.keyFile', message }
    }
    const pair = ['redis.certFile', 'redis.keyFile'] as const
    const [key, ...others] = pair.filter(isGiven)
    if (key === undefined || others.length > 0) return undefined
    return { key, message: `is set without ${pair.find(other => other !== key)}. Set both or neither.` }
  },

  /**
   * Checks the settings that name a file or folder inside wwwroot. If wwwroot is invalid, these settings cannot be
   * checked.
   */
  async function wwwrootHasTheNamedFiles(values) {
    if (!('wwwroot' in values)) return undefined
    const { wwwroot = STARTER_PAGE, fallback, hashedAssets = [] } = values
    const found: SettingsFinding[] = []
    if (fallback !== undefined && !(await statIfPossible(join(wwwroot, fallback)))?.isFile()) {
      const message = `cannot be the string ${quote(fallback)}, because wwwroot has no such file. Set it to a file of wwwroot, such as index.html.`
      found.push({ key: 'fallback', message })
    }
    for (const folder of hashedAssets) {
      if ((await statIfPossible(join(wwwroot, folder)))?.isDirectory()) continue
      const message = `lists ${quote(folder)}, but wwwroot has no such folder.`
      found.push({ key: 'hashedAssets', isWarning: true, message })
    }
    return found
  },

  // If wwwroot is invalid, there is no folder in which to look for these files.
  function privateFilesArePrivate(values, _isGiven, privateFiles) {
    return 'wwwroot' in values ? publishedFiles(privateFiles, values.wwwroot ?? STARTER_PAGE) : undefined
  },

  // A pattern that matches no file is probably wrong, and the files that it was meant for may be public.
  async function filePatternsMatchFiles({ 'access.files': patterns, ...values }) {
    if (!patterns || !('wwwroot' in values)) return undefined
    const { wwwroot } = values
    const key = 'access.files'
    if (wwwroot === undefined) {
      const message = 'has no effect, because wwwroot is not set. The files of the starter page are always public.'
      return { key, isWarning: true, message }
    }
    const findings = patterns.map(async pattern => {
      const why = await whyNoFile(pattern, wwwroot)
      return why === undefined
        ? []
        : [{ key, isWarning: true, message: `contains ${quote(pattern.text)}, but ${why}` } as const]
    })
    return (await Promise.all(findings)).flat()
  }
]

/** Returns which setting contains the scopes of a login, and its value. */
export function loginScopesOf({ mode, ...values }: Values) {
  const key = mode === 'dual' ? 'platform.internalTokenScopes' : 'platform.scopes'
  return { key, scopes: mode && values[key] } as const
}

// Returns true if browsers send Fetch Metadata to this URL, which they do only for trustworthy URLs (W3C Secure
// Contexts section 3.1).
function isTrustworthy(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || isLoopback(url) || hostname.endsWith('.localhost')
}
