import { parseRedisAddress, withoutSentinelPassword } from './redis-address.js'
import { asText, type Valibot, type ValueType } from './types.js'

// The addresses among the settings. They keep the spelling they were given: a callback URL is compared letter by
// letter by the provider.

export const callbackPath = '/api/auth/callback'

/** Where the provider sends the browser back to. */
export const callbackAddress: ValueType<string> = {
  allowed: `an absolute http or https address whose path ends in ${callbackPath}`,
  json: { type: 'string', pattern: `^https?://[^\\s?#]+${callbackPath}(\\?[^\\s#]*)?$` },
  fromText: asText,
  schema: v =>
    v.pipe(
      v.string(),
      v.check(isWebAddress, 'it is not an absolute http or https address'),
      v.check(address => !hasUser(address), 'it holds a user name'),
      // RFC 6749 section 3.1.2.
      v.check(address => !address.includes('#'), 'it holds a fragment'),
      v.check(address => pathOf(address).endsWith(callbackPath), `its path does not end in ${callbackPath}`),
      // What precedes the callback path is where our own redirects go; `//host` there would lead to another site.
      v.check(address => !pathOf(address).includes('//'), 'its path has an empty segment')
    )
}

/**
 * An endpoint or the issuer of the identity provider: secrets travel there, so it is https, or http that stays on
 * this machine.
 */
export const providerAddress: ValueType<string> = {
  allowed: 'an https address (plain http on this machine only)',
  json: { type: 'string', pattern: '^https?://[^\\s#]+$' },
  fromText: asText,
  schema: v => v.pipe(v.string(), isProviderAddress(v))
}

/** An endpoint that can be done without. */
export const optionalProviderAddress: ValueType<string> = {
  allowed: `${providerAddress.allowed}, or the word none`,
  json: { type: 'string', pattern: '^(none|https?://[^\\s#]+)$' },
  fromText: asText,
  schema: v => v.union([v.literal('none'), providerAddress.schema(v)])
}

/** RFC 8414 section 2: an issuer has neither query nor fragment. */
export const issuerAddress: ValueType<string> = {
  allowed: `${providerAddress.allowed} without query`,
  json: { type: 'string', pattern: '^https?://[^\\s?#]+$' },
  fromText: asText,
  schema: v =>
    v.pipe(
      v.string(),
      isProviderAddress(v),
      v.check(address => !address.includes('?'), 'it holds a query')
    )
}

export const redisAddress: ValueType<string> = {
  allowed: 'redis://host:6379/0, rediss:// for TLS, host,host for a cluster, host,host?sentinel=NAME for sentinels',
  json: { type: 'string', pattern: '^rediss?://\\S+$' },
  fromText: asText,
  schema: v =>
    v.pipe(
      v.string(),
      v.check(address => /^rediss?:\/\/\S+$/.test(address) && !!parseRedisAddress(address), 'it is no redis address')
    ),
  mask: address => withoutSentinelPassword(withoutUser(address))
}

/** The public path in front of ours, which a proxy takes off: '' or '/path'. */
export function basePathOf(callbackUrl: string): string {
  return pathOf(callbackUrl).slice(0, -callbackPath.length)
}

/** The start page: where people are after login and logout. */
export function homeUrlOf(callbackUrl: string): string {
  return `${new URL(callbackUrl).origin}${basePathOf(callbackUrl)}/`
}

/** Where a browser on this machine reaches what listens on `port` of `host`; without a host, on all interfaces. */
export function localUrlOf({ port, host }: { readonly port: number; readonly host: string | undefined }): string {
  const url = `http://${localNameOf(host)}:${port}`
  return URL.canParse(url) ? new URL(url).origin : url
}

/** The host of that address, in a browser's spelling: cookies belong to it, and a login ends where it began. */
export function localNameOf(host = 'localhost'): string {
  const name = host.includes(':') ? `[${host}]` : host
  const spelled = URL.canParse(`http://${name}`) ? new URL(`http://${name}`).hostname : name
  return spelled === '0.0.0.0' || spelled === '[::]' ? 'localhost' : spelled
}

/** Whether secrets may be sent there: https, or plain http that does not leave this machine. */
export function isSafeAddress(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { protocol } = new URL(address)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(address))
}

/** True for a host that only this machine can answer for. */
export function isLoopback(address: string): boolean {
  const { hostname } = new URL(address)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

/** The address without user name and password, fit to be shown. */
export function withoutUser(address: string): string {
  return address.replace(/\/\/[^/?#]*@/, '//***@')
}

/**
 * Judges an endpoint that the discovery document of `issuer` names. Returns the reason why it must not be used, or
 * undefined if it may. Plain http on this machine is allowed only if the issuer is on this machine as well: otherwise the
 * issuer could direct requests that carry secrets to local services.
 */
export function discoveredEndpointProblem(endpoint: string, issuer: string): string | undefined {
  const reason = brokenRule(endpoint)
  if (reason !== undefined) return reason
  if (isLoopback(endpoint) && new URL(endpoint).protocol === 'http:' && !isLoopback(issuer)) {
    return 'it is plain http on this machine, but the issuer is on another machine'
  }
  return undefined
}

// In this order, because the later rules need an address that can be parsed.
const providerRules: readonly { readonly holds: (address: string) => boolean; readonly reason: string }[] = [
  { holds: isWebAddress, reason: 'it is not an absolute http or https address' },
  { holds: address => !hasUser(address), reason: 'it holds a user name' },
  // RFC 6749 sections 3.1 and 3.2.
  { holds: address => !address.includes('#'), reason: 'it holds a fragment' },
  { holds: isSafeAddress, reason: 'plain http would carry secrets over the network' }
]

function brokenRule(address: string): string | undefined {
  return providerRules.find(({ holds }) => !holds(address))?.reason
}

function isProviderAddress(v: Valibot) {
  return v.check<string, (issue: { input: string }) => string>(
    address => brokenRule(address) === undefined,
    ({ input }) => brokenRule(input) ?? ''
  )
}

// The URL parser removes white space and replaces backslashes. An address that needs this is not what its author meant.
function isWebAddress(address: string): boolean {
  return /^https?:\/\/[^\s\\]+$/i.test(address) && URL.canParse(address)
}

function hasUser(address: string): boolean {
  const { username, password } = new URL(address)
  return username !== '' || password !== ''
}

function pathOf(address: string): string {
  return new URL(address).pathname
}
