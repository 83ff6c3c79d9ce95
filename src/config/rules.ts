import { isClaimEntry } from './access-entry.js'
import { isLoopback } from './addresses.js'
import { quote } from './errors.js'
import type { SettingKey, Values } from './settings.js'

// The rules between several settings. Each value has already passed its own check. If a value that a rule needs is missing,
// the rule finds nothing.

export interface SettingsFinding {
  readonly key: SettingKey
  readonly message: string
  readonly isWarning?: true
}

/** True if a source sets the setting, false if it has its default. */
export type IsGiven = (key: SettingKey) => boolean
type SettingsRule = (values: Values, isGiven: IsGiven) => SettingsFinding | readonly SettingsFinding[] | undefined

export function findings(values: Values, isGiven: IsGiven): SettingsFinding[] {
  return rules.flatMap(rule => rule(values, isGiven) ?? [])
}

const rules: readonly SettingsRule[] = [
  publicScopesAreInternalToo,
  scopesOfTheOtherMode,
  callbackOverPlainHttp,
  logoutNeedsItsEndpoint,
  backChannelLogoutNeedsOpenid,
  accessListNeedsClaims,
  clientKeyFits,
  listenersHaveTheirOwnPorts,
  sessionsInRedisNeedRedis,
  forwardAuthWithoutRedis,
  graceCoversARefresh,
  publicTokenNeedsDualMode,
  proxyNeedsFetchMetadata,
  logoNeedsName
]

function publicScopesAreInternalToo(values: Values): SettingsFinding | undefined {
  const { mode, 'platform.publicScopes': publicScopes, 'platform.internalScopes': internalScopes } = values
  if (mode !== 'dual' || !publicScopes || !internalScopes) return undefined
  const key = 'platform.publicScopes'
  const extra = publicScopes.filter(scope => !internalScopes.includes(scope))
  // The public token comes from a refresh, and a refresh cannot add scopes to those of the login (RFC 6749 section 6).
  if (extra.length > 0) {
    const allowed = `allowed: some of platform.internalScopes (${internalScopes.join(' ')})`
    return { key, message: `found ${extra.join(' ')}, which the internal token lacks; ${allowed}` }
  }
  if (internalScopes.every(scope => publicScopes.includes(scope))) {
    return {
      key,
      isWarning: true,
      message: 'are the same as platform.internalScopes, so pages have the same access as the server'
    }
  }
  return undefined
}

function scopesOfTheOtherMode({ mode }: Values, isGiven: IsGiven): SettingsFinding[] {
  const ofOtherMode: Record<string, readonly SettingKey[]> = {
    single: ['platform.internalScopes', 'platform.publicScopes'],
    dual: ['platform.scopes']
  }
  const unused = (ofOtherMode[mode ?? ''] ?? []).filter(isGiven)
  return unused.map(key => ({ key, isWarning: true, message: `has no effect, because mode is ${mode}` }))
}

function callbackOverPlainHttp({ 'platform.callbackUrl': address }: Values): SettingsFinding | undefined {
  if (!address || isTrustworthy(address)) return undefined
  const message =
    'is plain http on another machine, so others on the network can read codes and cookies, and browsers reject __Host- cookies'
  return { key: 'platform.callbackUrl', isWarning: true, message }
}

function logoutNeedsItsEndpoint(values: Values, isGiven: IsGiven): SettingsFinding | undefined {
  const { logout, 'platform.endSessionEndpoint': endSession, 'platform.revocationEndpoint': revocation } = values
  if (logout === 'idp' && endSession === 'none') {
    return { key: 'logout', message: 'found idp, but platform.endSessionEndpoint is none; allowed: local or revoke' }
  }
  if (logout === 'revoke' && isGiven('logout') && revocation === 'none') {
    return { key: 'logout', isWarning: true, message: 'revokes nothing, because platform.revocationEndpoint is none' }
  }
  return undefined
}

// A logout token names the issuer, and the person or the login of an ID token (OpenID Connect Back-Channel Logout
// section 2.4).
function backChannelLogoutNeedsOpenid(values: Values): SettingsFinding | undefined {
  const { mode, 'platform.backChannelLogout': isOn, 'platform.issuer': issuer } = values
  const key = 'platform.backChannelLogout'
  if (!isOn || !mode) return undefined
  if (issuer === undefined) {
    const reason = 'the server needs the issuer to find the keys of the provider, with which it checks logout tokens'
    return { key, message: `is on without platform.issuer, but ${reason}; set platform.issuer` }
  }
  const scopesKey = mode === 'dual' ? 'platform.internalScopes' : 'platform.scopes'
  const scopes = values[scopesKey]
  if (!scopes || scopes.includes('openid')) return undefined
  const found = `is on, but ${scopesKey} has no openid, so the server does not know to whom a session belongs`
  return { key, message: `${found}; add openid to ${scopesKey}` }
}

// Without a user info endpoint, the claims can only come from the ID token, and the provider sends an ID token only
// for the scope openid (OpenID Connect Core sections 3.1.2.1 and 5.4).
function accessListNeedsClaims(values: Values): SettingsFinding | undefined {
  const { mode, 'access.allow': allow, 'platform.userinfoEndpoint': userInfo } = values
  const scopesKey = mode === 'dual' ? 'platform.internalScopes' : 'platform.scopes'
  const scopes = values[scopesKey]
  if (!allow || userInfo !== 'none' || !mode || !scopes) return undefined
  const key = 'access.allow'
  if (!scopes.includes('openid')) {
    const found = `is set, but platform.userinfoEndpoint is none and ${scopesKey} has no openid, so the server cannot learn who a person is`
    return { key, message: `${found}; add openid and email to ${scopesKey}, or set platform.userinfoEndpoint` }
  }
  if (scopes.includes('email') || allow.every(isClaimEntry)) return undefined
  const message = `reads the e-mail address from the ID token, but ${scopesKey} has no email; if the ID token contains no e-mail address, nobody can sign in`
  return { key, isWarning: true, message }
}

function clientKeyFits(values: Values, isGiven: IsGiven): SettingsFinding | undefined {
  const { 'platform.clientAuthentication': method, 'platform.clientKey': key } = values
  if (method === undefined) return undefined
  if (method !== 'private_key_jwt') {
    const unused = `has no effect, because platform.clientAuthentication is ${method}`
    return isGiven('platform.clientKey') ? { key: 'platform.clientKey', isWarning: true, message: unused } : undefined
  }
  if (!isGiven('platform.clientKey')) {
    const message =
      'found private_key_jwt, but there is no key; set PLATFORM_CLIENT_KEY_FILE to the path of a private key'
    return { key: 'platform.clientAuthentication', message }
  }
  const { 'platform.clientKeyAlgorithm': algorithm } = values
  if (!key || !algorithm || key.algorithms.includes(algorithm)) return undefined
  const message = `found ${algorithm}, but platform.clientKey is another kind of key; allowed: ${key.algorithms.join(' or ')}`
  return { key: 'platform.clientKeyAlgorithm', message }
}

function listenersHaveTheirOwnPorts(values: Values): SettingsFinding[] {
  const server: Listening = { port: values.port, host: values.host, name: 'the server itself' }
  const forwardAuth: Listening = {
    port: values['forwardAuth.port'],
    host: values['forwardAuth.host'],
    name: 'forward-auth'
  }
  const metrics = { port: values['metrics.port'], host: values['metrics.host'] }
  return [
    ...collisions('forwardAuth.port', forwardAuth, [server]),
    ...collisions('metrics.port', metrics, [server, forwardAuth])
  ]
}

interface Listening {
  readonly port: number | undefined
  readonly host: string | undefined
  /** The name in messages. */
  readonly name: string
}

function collisions(
  key: SettingKey,
  { port, host }: Omit<Listening, 'name'>,
  others: readonly Listening[]
): SettingsFinding[] {
  const taken = others.filter(other => port && other.port === port && (other.host === undefined || other.host === host))
  return taken.map(({ name }) => ({
    key,
    message: `found ${port}, but ${name} already uses this port; allowed: any other port`
  }))
}

function sessionsInRedisNeedRedis({ 'session.store': store, redisUrl }: Values): SettingsFinding | undefined {
  if (store !== 'redis' || redisUrl !== undefined) return undefined
  const message =
    'found redis, but redisUrl is not set; allowed: cookie, or redis with redisUrl, for example redisUrl: redis://localhost:6379'
  return { key: 'session.store', message }
}

function forwardAuthWithoutRedis({ 'forwardAuth.port': port, redisUrl }: Values): SettingsFinding | undefined {
  if (port === undefined || redisUrl !== undefined) return undefined
  const message =
    "is set without redisUrl; a session that was refreshed through a gateway exists only in this process's memory until its browser requests a path below /api/auth; if the server restarts before that, the person is signed out"
  return { key: 'forwardAuth.port', isWarning: true, message }
}

// If a stop interrupts a refresh, the old refresh token is already spent, and the browser does not receive the new refresh
// token.
function graceCoversARefresh(values: Values): SettingsFinding | undefined {
  const { mode, 'platform.timeoutSeconds': timeoutSeconds, 'shutdown.graceSeconds': graceSeconds } = values
  if (!mode || timeoutSeconds === undefined || graceSeconds === undefined) return undefined
  const [calls, longest] = mode === 'dual' ? ['two calls', 2 * timeoutSeconds] : ['one call', timeoutSeconds]
  if (graceSeconds >= longest) return undefined
  const duration = `a refresh may take ${longest} seconds (${calls} of platform.timeoutSeconds)`
  const message = `is ${graceSeconds}, but ${duration}; if a stop interrupts a refresh, that person must sign in again`
  return { key: 'shutdown.graceSeconds', isWarning: true, message }
}

function publicTokenNeedsDualMode({ mode, 'proxy.routes': routes = [] }: Values): SettingsFinding[] {
  const unusable = routes.filter(({ token }) => token === 'public' && mode === 'single')
  return unusable.map(({ text }) => ({
    key: 'proxy.routes',
    message: `the rule ${quote(text)} uses the public token, but mode is single; allowed: token=internal`
  }))
}

function proxyNeedsFetchMetadata(values: Values): SettingsFinding | undefined {
  const { 'platform.callbackUrl': address, 'proxy.routes': routes = [], 'proxy.csrfHeader': csrfHeader } = values
  if (routes.length === 0 || csrfHeader !== undefined || !address || isTrustworthy(address)) return undefined
  const message =
    'are used over plain http, where browsers do not send the headers that tell which site a request comes from; use https, or set proxy.csrfHeader'
  return { key: 'proxy.routes', isWarning: true, message }
}

// WCAG 2.2, success criterion 1.1.1.
function logoNeedsName({ 'pages.logo': logo, 'pages.name': name }: Values): SettingsFinding | undefined {
  if (logo === undefined || name !== undefined) return undefined
  const message = 'is set without pages.name, so screen readers cannot tell what the logo shows; set pages.name'
  return { key: 'pages.logo', message }
}

// Browsers send Fetch Metadata only to trustworthy addresses (W3C Secure Contexts section 3.1).
function isTrustworthy(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'https:' || isLoopback(address) || hostname.endsWith('.localhost')
}
