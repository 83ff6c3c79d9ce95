import { isLoopback } from './addresses.js'
import { parseRules } from './proxy-rules.js'
import { quote } from './quote.js'
import type { SettingKey, Values } from './settings.js'

// What settings must be to each other. A rule sees only values that passed by themselves, so it says nothing about a
// missing one.

export interface Finding {
  readonly key: SettingKey
  readonly message: string
  readonly isWarning?: true
}

/** True when somebody set it, false when the default holds. */
export type IsGiven = (key: SettingKey) => boolean
type Rule = (values: Values, isGiven: IsGiven) => Finding | readonly Finding[] | undefined

export function findings(values: Values, isGiven: IsGiven): Finding[] {
  return rules.flatMap(rule => rule(values, isGiven) ?? [])
}

const rules: readonly Rule[] = [
  publicScopesAreInternalToo,
  scopesOfTheOtherMode,
  callbackOverPlainHttp,
  logoutNeedsItsEndpoint,
  listenersHaveTheirOwnPorts,
  forwardAuthWithoutRedis,
  graceCoversARefresh,
  proxyRulesAreUsable,
  proxyNeedsFetchMetadata
]

function publicScopesAreInternalToo(values: Values): Finding | undefined {
  const { mode, 'platform.publicScopes': publicScopes, 'platform.internalScopes': internalScopes } = values
  if (mode !== 'dual' || !publicScopes || !internalScopes) return undefined
  const key = 'platform.publicScopes'
  const extra = publicScopes.filter(scope => !internalScopes.includes(scope))
  // The public token is a refresh of the internal one, and a refresh may only narrow (RFC 6749 section 6).
  if (extra.length > 0) {
    const allowed = `allowed: some of platform.internalScopes (${internalScopes.join(' ')})`
    return { key, message: `found ${extra.join(' ')}, which the internal token lacks; ${allowed}` }
  }
  if (internalScopes.every(scope => publicScopes.includes(scope))) {
    return {
      key,
      isWarning: true,
      message: 'are the same as the internal ones, so pages can do all that the server can'
    }
  }
  return undefined
}

function scopesOfTheOtherMode({ mode }: Values, isGiven: IsGiven): Finding[] {
  const ofOtherMode: Record<string, readonly SettingKey[]> = {
    single: ['platform.internalScopes', 'platform.publicScopes'],
    dual: ['platform.scopes']
  }
  const unused = (ofOtherMode[mode ?? ''] ?? []).filter(isGiven)
  return unused.map(key => ({ key, isWarning: true, message: `has no effect, for mode is ${mode}` }))
}

function callbackOverPlainHttp({ 'platform.callbackUrl': address }: Values): Finding | undefined {
  if (!address || isTrustworthy(address)) return undefined
  const message =
    'is plain http on another machine: codes and cookies can be read on the way, and browsers keep no __Host- cookie'
  return { key: 'platform.callbackUrl', isWarning: true, message }
}

function logoutNeedsItsEndpoint(values: Values, isGiven: IsGiven): Finding | undefined {
  const { logout, 'platform.endSessionEndpoint': endSession, 'platform.revocationEndpoint': revocation } = values
  if (logout === 'idp' && endSession === 'none') {
    return { key: 'logout', message: 'found idp, but platform.endSessionEndpoint is none; allowed: local or revoke' }
  }
  if (logout === 'revoke' && isGiven('logout') && revocation === 'none') {
    return { key: 'logout', isWarning: true, message: 'revokes nothing, for platform.revocationEndpoint is none' }
  }
  return undefined
}

function listenersHaveTheirOwnPorts(values: Values): Finding[] {
  const server: Listening = { port: values.port, host: values.host, taker: 'the server itself' }
  const forwardAuth: Listening = {
    port: values['forwardAuth.port'],
    host: values['forwardAuth.host'],
    taker: 'forward-auth'
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
  /** What messages call it. */
  readonly taker: string
}

function collisions(
  key: SettingKey,
  { port, host }: Omit<Listening, 'taker'>,
  others: readonly Listening[]
): Finding[] {
  const taken = others.filter(other => port && other.port === port && (other.host === undefined || other.host === host))
  return taken.map(({ taker }) => ({
    key,
    message: `found ${port}, which ${taker} listens on; allowed: any other port`
  }))
}

function forwardAuthWithoutRedis({ 'forwardAuth.port': port, redisUrl }: Values): Finding | undefined {
  if (port === undefined || redisUrl !== undefined) return undefined
  const message =
    'is on without redisUrl, so a restart signs out people whose session was refreshed for a gateway and whose browser has not called /api/auth since'
  return { key: 'forwardAuth.port', isWarning: true, message }
}

// A renewal that a stop cuts has spent its refresh token, and nobody gets the new one.
function graceCoversARefresh(values: Values): Finding | undefined {
  const { mode, 'platform.timeoutSeconds': timeoutSeconds, 'shutdown.graceSeconds': graceSeconds } = values
  if (!mode || timeoutSeconds === undefined || graceSeconds === undefined) return undefined
  const [calls, longest] = mode === 'dual' ? ['two calls', 2 * timeoutSeconds] : ['one call', timeoutSeconds]
  if (graceSeconds >= longest) return undefined
  const renewal = `a renewal may take ${longest} seconds (${calls} of platform.timeoutSeconds)`
  const message = `is ${graceSeconds}, but ${renewal}: a stop can cut it, and that person signs in again`
  return { key: 'shutdown.graceSeconds', isWarning: true, message }
}

function proxyRulesAreUsable({ mode, 'proxy.routes': routes = [] }: Values): Finding[] {
  const { rules, problems } = parseRules(routes)
  const tokens = rules.filter(({ token }) => token === 'public' && mode === 'single')
  const wrongTokens = tokens.map(
    ({ text }) => `the rule ${quote(text)} asks for the public token, but mode is single; allowed: no token=public`
  )
  return [...problems, ...wrongTokens].map(message => ({ key: 'proxy.routes', message }))
}

function proxyNeedsFetchMetadata(values: Values): Finding | undefined {
  const { 'platform.callbackUrl': address, 'proxy.routes': routes = [], 'proxy.csrfHeader': csrfHeader } = values
  if (routes.length === 0 || csrfHeader !== undefined || !address || isTrustworthy(address)) return undefined
  const message =
    'are used over plain http, where browsers do not say which site a request comes from: use https, or set proxy.csrfHeader'
  return { key: 'proxy.routes', isWarning: true, message }
}

// Browsers send Fetch Metadata to such addresses only (W3C Secure Contexts section 3.1).
function isTrustworthy(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'https:' || isLoopback(address) || hostname.endsWith('.localhost')
}
