/** Explains connections that fail. An explanation is the text of a finding. */
import { parseProxy } from '../../config/outbound-proxy.js'
import { messageOf } from '../terminal/expected-errors.js'
import { textFor } from './findings.js'

/** A host, the setting that contains its URL, and the time limit of the connection. */
export interface CheckedHost {
  readonly host: string
  /** Undefined for a built-in URL. */
  readonly setting: string | undefined
  readonly timeoutSeconds: number
}

export function explainConnectionError(code: string | undefined, { host, setting, timeoutSeconds }: CheckedHost) {
  const inSetting = setting === undefined ? '' : ` in ${setting}`
  const shown = code !== undefined && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'unknown reason'
  const texts = {
    '^ENOTFOUND$': `DNS does not know the name of ${host} (${shown}). Next: Check the name${inSetting}, and whether this machine can resolve other names.`,
    '^EAI_': `DNS did not respond to the query for ${host} (${shown}). Next: Check the DNS servers of this machine or container.`,
    '^ECONNREFUSED$': `${host} refuses connections (${shown}). Next: Check host and port${inSetting}. If they are right, no server listens there or a firewall rejects the connection.`,
    '^E(NET|HOST)UNREACH$': `There is no network route to ${host} (${shown}). Next: Check the network and the firewall of this machine.`,
    '^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$': `${host} did not respond within ${timeoutSeconds} s. Next: Check whether a firewall blocks the connection, or whether this machine needs a proxy (HTTPS_PROXY).`,
    '^(ECONNRESET|ECONNABORTED|EPIPE)$': `${host} closed the connection (${shown}). Next: Check again. If the problem persists, look for a firewall or proxy between this machine and that host.`,
    '^CERT_HAS_EXPIRED$': `The certificate of ${host} has expired (${shown}). Next: Check the clock of this machine. If the clock is right, the operator of that host must renew the certificate.`,
    '^CERT_NOT_YET_VALID$': `The certificate of ${host} is not valid yet (${shown}). Next: Check the clock of this machine, which is probably behind.`,
    '^ERR_TLS_CERT_ALTNAME_INVALID$': `The certificate of ${host} is for a different name (${shown}). Next: Check the host${inSetting}. If the host is right, a different server responds.`,
    'CERT|^UNABLE_TO_': `This machine does not trust the certificate of ${host} (${shown}). Next: If a private certificate authority or a TLS-inspecting proxy signed it, set NODE_EXTRA_CA_CERTS to the file with the certificate of that authority.`,
    '^EPROTO$|^ERR_SSL_': `${host} does not speak TLS as expected (${shown}). Next: Check scheme and port${inSetting}. The port must speak TLS.`
  }
  const otherwise = `The connection to ${host} failed (${shown}). Next: Check ${setting ?? 'the URL'} and the network of this machine.`
  return textFor(shown, texts) ?? otherwise
}

// A machine behind a proxy connects only to the proxy, which reports with a status that it cannot connect to the host.
const OF_PROXY = /^(PROXY_|ENOTFOUND$|EAI_|ECONNREFUSED$|E(NET|HOST)UNREACH$)/

/**
 * Explains why a call to an https host failed, at the host or at the proxy for this host.
 * @param proxy the URL of the proxy, or undefined if the connection is direct
 */
export function explainCallError(code: string | undefined, proxy: string | undefined, checked: CheckedHost): string {
  if (proxy === undefined || !OF_PROXY.test(code ?? '')) return explainConnectionError(code, checked)
  const problem = problemOfProxy(proxy)
  if (problem !== undefined) return problem
  const { host } = new URL(proxy)
  const [, status] = /^PROXY_RESPONDED_(\d+)$/.exec(code ?? '') ?? []
  const ofProxy = { ...checked, host: `the proxy ${host}`, setting: 'HTTPS_PROXY' }
  if (status === undefined) return explainConnectionError(code, ofProxy).replace(/^t/, 'T')
  const text = `The proxy ${host} responds with ${status} and opens no tunnel to ${checked.host}.`
  if (status === '407') return `${text} Next: Check the user name and the password in HTTPS_PROXY.`
  return `${text} Next: Check HTTPS_PROXY, and whether the proxy allows this host. List hosts that need no proxy in NO_PROXY.`
}

/** Returns the text of a finding if the server cannot use a proxy. It contains no part of the proxy's URL. */
export function problemOfProxy(proxy: string): string | undefined {
  try {
    parseProxy(proxy)
    return undefined
  } catch (error) {
    return `${messageOf(error)} Next: Set HTTPS_PROXY to a URL such as http://host:port.`
  }
}
