import { getProxyForUrl } from 'proxy-from-env'
import { isLoopback } from './types/urls.js'

// This function is not in urls.ts, because `--help` loads that file and should not load the package proxy-from-env.

/**
 * Returns the proxy for calls of this process to a URL, or undefined for a direct call. The proxy comes from the
 * variables HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in upper or lower case. Calls to this machine never use a
 * proxy.
 */
export function outboundProxy(url: string): string | undefined {
  if (leadsToThisMachine(url)) return undefined
  const proxy = getProxyForUrl(url)
  if (proxy === '') return undefined
  // If a variable contains a proxy without a scheme, proxy-from-env adds the scheme of the called URL. By convention,
  // such a proxy expects plain http, so the scheme is replaced.
  const isAsGiven = Object.values(process.env).includes(proxy)
  return isAsGiven ? proxy : proxy.replace(/^https:/, 'http:')
}

/** True also for the names below localhost (RFC 6761 section 6.3), and for IPv4 addresses of this machine as IPv6 addresses. */
function leadsToThisMachine(url: string): boolean {
  return isLoopback(url) || /(^|\.)localhost\.?$|^\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\]$/.test(new URL(url).hostname)
}

/**
 * Parses the URL of a proxy, with a user name and a password if it needs them.
 * @throws an Error with a code, without the URL, which may contain a password, if the server cannot use this proxy
 */
export function parseProxy(proxy: string) {
  // In `http://user:1/2@host`, the name of the host would be `user`.
  if (!URL.canParse(proxy) || /[/?#\\].*@/s.test(proxy.replace(/^\w+:\/\//, '')))
    throw unusableProxy('PROXY_URL_MALFORMED', 'has a malformed URL')
  const { protocol, hostname, port, username, password } = new URL(proxy)
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw unusableProxy('PROXY_NOT_HTTP', 'uses neither http nor https')
  }
  const isTls = protocol === 'https:'
  // In a URL, an IPv6 address has brackets.
  const host = hostname.replace(/^\[|\]$/g, '')
  return { isTls, host, port: Number(port || (isTls ? 443 : 80)), credentials: credentialsOf(username, password) }
}

function credentialsOf(username: string, password: string): string | undefined {
  if (username === '' && password === '') return undefined
  try {
    return `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  } catch {
    throw unusableProxy('PROXY_USER_MALFORMED', 'has a user name or a password whose percent-encoding is malformed')
  }
}

function unusableProxy(code: string, why: string): Error {
  return Object.assign(new Error(`The proxy ${why}.`), { code })
}
