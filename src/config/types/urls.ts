import { type StringCheck, stringWith, type ValueType } from './value-type.js'

// The paths of the built-in routes. In the public URLs, the base path of a reverse proxy may come before them
// (`basePathOf`).

/** The path above the routes of login, logout and tokens. */
export const AUTH_PATH = '/api/auth'

export const AUTH_ROUTES = {
  login: `${AUTH_PATH}/login`,
  callback: `${AUTH_PATH}/callback`,
  logout: `${AUTH_PATH}/logout`,
  backchannelLogout: `${AUTH_PATH}/backchannel-logout`,
  profile: `${AUTH_PATH}/profile`,
  token: `${AUTH_PATH}/token`,
  client: `${AUTH_PATH}/client.js`
} as const

export const HEALTH_ROUTES = { healthz: '/healthz', readyz: '/readyz' } as const

/** True for `/api/auth` and every path below it. */
export function isAuthPath(path: string): boolean {
  return path.startsWith(AUTH_PATH) && (path.length === AUTH_PATH.length || path[AUTH_PATH.length] === '/')
}

// Types of the settings that are URLs. A URL keeps its original spelling, because the provider compares the callback URL
// character by character.

export const callbackPath = AUTH_ROUTES.callback

// The order matters, because the later checks need a URL that can be parsed.
const webChecks: readonly StringCheck[] = [
  { accepts: isWebUrl, reason: 'it is not an absolute http or https URL' },
  { accepts: url => !hasUser(url), reason: 'it contains a user name' },
  // RFC 6749 sections 3.1, 3.1.2 and 3.2.
  { accepts: url => !url.includes('#'), reason: 'it contains a fragment' }
]

function urlType(allowed: string, pattern: string, ...checks: readonly StringCheck[]): ValueType<string> {
  return { allowed, mask: maskUrl, json: { type: 'string', pattern }, parse: stringWith(...webChecks, ...checks) }
}

/** The type of the callback URL, to which the provider sends the browser after a login. */
export const callbackUrl = urlType(
  `an absolute http or https URL whose path ends in ${callbackPath}`,
  `^https?://[^\\s?#]+${callbackPath}(\\?[^\\s#]*)?$`,
  { accepts: url => pathnameOf(url).endsWith(callbackPath), reason: `its path does not end in ${callbackPath}` },
  // The server redirects to the path that precedes the callback path. If this path contained `//host`, the redirect
  // would lead to another site.
  { accepts: url => !pathnameOf(url).includes('//'), reason: 'its path has an empty segment' }
)

const usesHttps: StringCheck = {
  accepts: url => new URL(url).protocol === 'https:' || isLoopback(url),
  reason: 'plain http would send secrets over the network unencrypted'
}
const onlyHttps = 'an https URL (plain http only on this machine)'

/**
 * The type of a setting that is the URL of a provider endpoint. The URL must use https, because secrets are sent to it. Plain
 * http is allowed only on this machine.
 */
export const providerUrl = urlType(onlyHttps, '^https?://[^\\s#]+$', usesHttps)

const optionalUrl = urlType(`${onlyHttps}, or the word none`, '^(none|https?://[^\\s#]+)$', usesHttps)

/** The type of an optional endpoint. The word `none` disables the endpoint. */
export const optionalProviderUrl: ValueType<string> = {
  ...optionalUrl,
  parse: written => (written === 'none' ? { value: written } : optionalUrl.parse(written))
}

/** The type of the issuer, which has neither a query nor a fragment (RFC 8414 section 2). */
export const issuerUrl = urlType(`${onlyHttps} without a query`, '^https?://[^\\s?#]+$', usesHttps, {
  accepts: url => !url.includes('?'),
  reason: 'it contains a query'
})

/**
 * Returns the base path, which is the part of the callback URL's path before `/api/auth/callback`. It is '' or '/path'.
 * A reverse proxy removes it from the path of each request.
 */
export function basePathOf(callbackUrl: string): string {
  return pathnameOf(callbackUrl).slice(0, -callbackPath.length)
}

/** Returns the public URL of the start page. */
export function homeUrlOf(callbackUrl: string): string {
  return `${new URL(callbackUrl).origin}${basePathOf(callbackUrl)}/`
}

/**
 * Returns the URL at which a browser on this machine reaches a server that listens on `port` of `host`. If `host` is
 * undefined, the server listens on all interfaces, and the URL contains `localhost`.
 */
export function localUrlOf({ port, host }: { readonly port: number; readonly host: string | undefined }): string {
  const url = `http://${localNameOf(host)}:${port}`
  return URL.canParse(url) ? new URL(url).origin : url
}

/**
 * Returns the host name at which a browser on this machine reaches a server that listens on `host`. The name is spelled as
 * browsers spell it, because a cookie belongs to exactly one host name.
 */
export function localNameOf(host = 'localhost'): string {
  const name = host.includes(':') ? `[${host}]` : host
  const spelled = URL.canParse(`http://${name}`) ? new URL(`http://${name}`).hostname : name
  return spelled === '0.0.0.0' || spelled === '[::]' ? 'localhost' : spelled
}

/** True if the host of the URL is always this machine. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

/** The parts of a request that tell where it comes from, as in Node's IncomingMessage. */
interface ReceivedRequest {
  readonly socket: { readonly remoteAddress?: string | undefined }
  readonly headers: { readonly host?: string | undefined }
}

/**
 * True if a request comes from this machine and its `Host` is this machine or the host of `publicUrl`. Checking the IP
 * address is not enough, because another site can make its host name resolve to 127.0.0.1 (DNS rebinding). A browser on
 * this machine then sends requests from pages of that site to this server, with that host name in `Host`. Checking
 * `Host` is not enough either, because a program on another machine can send any `Host`.
 */
export function isLocalRequest({ socket, headers }: ReceivedRequest, publicUrl: string): boolean {
  const isLocalPeer = /^(::1$|(::ffff:)?127\.)/.test(socket.remoteAddress ?? '')
  const url = `http://${headers.host}`
  if (!isLocalPeer || !URL.canParse(url)) return false
  return isLoopback(url) || new URL(url).hostname === new URL(publicUrl).hostname
}

/**
 * Returns a URL for messages: everything between the scheme and the last @ is replaced, and query and fragment are left out. The
 * whole string is searched for the @, because a password may contain a /, ? or # that was not percent-encoded. If the @ follows
 * a ? or #, it may also belong to a query, so nothing after the scheme is shown.
 */
export function maskUrl(url: string): string {
  const [, scheme = '', rest = ''] = /^((?:https?|rediss?):[/\\]*)?(.*)$/is.exec(url) ?? []
  const end = rest.lastIndexOf('@')
  if (/[?#]/.test(rest.slice(0, Math.max(end, 0)))) return `${scheme}***`
  return `${scheme}${end === -1 ? '' : '***@'}${rest.slice(end + 1).replace(/[?#].*/s, '')}`
}

/**
 * Checks an endpoint from the discovery document of `issuer`. Returns the reason why it must not be used, or undefined
 * if it may be used. Plain http on this machine is allowed only if the issuer is also on this machine. Otherwise the
 * issuer could make the server send secrets to local services.
 */
export function discoveredEndpointProblem(endpoint: string, issuer: string): string | undefined {
  const broken = [...webChecks, usesHttps].find(({ accepts }) => !accepts(endpoint))
  if (broken) return broken.reason
  if (isLoopback(endpoint) && new URL(endpoint).protocol === 'http:' && !isLoopback(issuer)) {
    return 'it uses plain http and names this machine, but the issuer is on another machine'
  }
  return undefined
}

// The URL parser removes white space and replaces backslashes. A URL that needs such a correction is rejected, because
// the operator may have meant a different URL.
function isWebUrl(url: string): boolean {
  return /^https?:\/\/[^\s\\]+$/i.test(url) && URL.canParse(url)
}

function hasUser(url: string): boolean {
  const { username, password } = new URL(url)
  return username !== '' || password !== ''
}

function pathnameOf(url: string): string {
  return new URL(url).pathname
}
