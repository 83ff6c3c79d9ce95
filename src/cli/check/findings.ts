/** The findings of the checks, and the explanations of requests and connections that fail. */
import type { Socket } from 'node:net'
import { errorCode } from '../../base/error-code.js'
import { outboundProxy, parseProxy } from '../../config/outbound-proxy.js'
import type { Config } from '../../config/settings.js'
import { OAuthError, ProviderError } from '../../provider/errors.js'
import type { ProviderMetadata } from '../../provider/metadata.js'
import { NO_ACCESS_CODE } from '../../provider/quirks.js'
import { messageOf } from '../terminal/errors.js'

/** One result of a check. */
export interface Finding {
  readonly status: 'ok' | 'warning' | 'failed'
  /** Whole sentences, without a secret and without text from the provider. */
  readonly message: string
  /** Advice on what to do. */
  readonly next?: string
}

/** The finding that a setting or an endpoint is right. */
export function ok(message: string): Finding {
  return { status: 'ok', message }
}

/** A finding that the operator should know about, but that does not keep the server from working. */
export function warning(message: string, next: string): Finding {
  return { status: 'warning', message, next }
}

/** A finding that keeps the server from working. It makes the exit code 1. */
export function failed(message: string, next: string): Finding {
  return { status: 'failed', message, next }
}

/** Advice for a client that may not use the authorization code grant. */
export const webApplicationAdvice =
  'Register the application as a web application that may use the authorization code grant.'

/** The arguments of `warning` and `failed`. */
export type Explanation = readonly [message: string, next: string]

/**
 * Opens a connection and closes it again. Returns the code of the error if the connection fails, and undefined if it works.
 * @param opened the event of the socket after which the connection works
 * @param lateMs how long to wait for an error after this event
 */
export function connectionError(
  socket: Socket,
  opened: 'connect' | 'secureConnect',
  timeoutMs: number,
  lateMs = 0
): Promise<string | undefined> {
  return new Promise(resolve => {
    let timer = setTimeout(() => end('ETIMEDOUT'), timeoutMs)
    function end(code: string | undefined) {
      clearTimeout(timer)
      socket.destroy()
      resolve(code)
    }
    // A connection that the other side closes can emit a second error, for example a TLS alert after ECONNRESET.
    socket.on('error', error => end(errorCode(error) ?? 'unknown'))
    socket.once('close', () => end(undefined))
    socket.once(opened, () => {
      clearTimeout(timer)
      timer = setTimeout(() => end(undefined), lateMs)
    })
  })
}

/** A host, the setting that contains its URL, and the time limit of the connection. */
type CheckedHost = Pick<CheckedRequest, 'setting' | 'timeoutSeconds'> & { readonly host: string }

export function explainConnectionError(code: string | undefined, checked: CheckedHost): Explanation {
  const { host, setting, timeoutSeconds } = checked
  const inSetting = setting === undefined ? '' : ` in ${setting}`
  const shown = code !== undefined && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'unknown reason'
  const rows: readonly (readonly [codes: RegExp, ...Explanation])[] = [
    [
      /^ENOTFOUND$/,
      `DNS does not know the name of ${host} (${shown}).`,
      `Check the name${inSetting}, and whether this machine can resolve other names.`
    ],
    [
      /^EAI_/,
      `DNS did not respond to the query for ${host} (${shown}).`,
      'Check the DNS servers of this machine or container.'
    ],
    [
      /^ECONNREFUSED$/,
      `${host} refuses connections (${shown}).`,
      `Check host and port${inSetting}. If they are right, no server listens there or a firewall rejects the connection.`
    ],
    [
      /^E(NET|HOST)UNREACH$/,
      `There is no network route to ${host} (${shown}).`,
      'Check the network and the firewall of this machine.'
    ],
    [
      /^ETIMEDOUT$/,
      `${host} did not respond within ${timeoutSeconds} s.`,
      'Check whether a firewall blocks the connection, or whether this machine needs a proxy (HTTPS_PROXY).'
    ],
    [
      /^(ECONNRESET|ECONNABORTED|EPIPE)$/,
      `${host} closed the connection (${shown}).`,
      'Check again. If the problem persists, look for a firewall or proxy between this machine and that host.'
    ],
    [
      /^CERT_HAS_EXPIRED$/,
      `The certificate of ${host} has expired (${shown}).`,
      'Check the clock of this machine. If the clock is right, the operator of that host must renew the certificate.'
    ],
    [
      /^CERT_NOT_YET_VALID$/,
      `The certificate of ${host} is not valid yet (${shown}).`,
      'Check the clock of this machine, which is probably behind.'
    ],
    [
      /^ERR_TLS_CERT_ALTNAME_INVALID$/,
      `The certificate of ${host} is for a different name (${shown}).`,
      `Check the host${inSetting}. If the host is right, a different server responds.`
    ],
    [
      /CERT|^UNABLE_TO_/,
      `This machine does not trust the certificate of ${host} (${shown}).`,
      'If a private certificate authority or a TLS-inspecting proxy signed it, set NODE_EXTRA_CA_CERTS to the file with the certificate of that authority.'
    ],
    [
      /^EPROTO$|^ERR_SSL_/,
      `${host} does not speak TLS as expected (${shown}).`,
      `Check scheme and port${inSetting}. The port must speak TLS.`
    ],
    [
      /^/,
      `The connection to ${host} failed (${shown}).`,
      `Check ${setting ?? 'the URL'} and the network of this machine.`
    ]
  ]
  const [, message = '', next = ''] = rows.find(([codes]) => codes.test(shown)) ?? []
  return [message, next]
}

// A machine behind a proxy connects only to the proxy, which reports with a status that it cannot connect to the host.
const OF_PROXY = /^(PROXY_|ENOTFOUND$|EAI_|ECONNREFUSED$|E(NET|HOST)UNREACH$)/

/** Explains why a call to an https host failed at the proxy for this host. */
export function explainProxyError(code = '', proxy: string, checked: CheckedHost): Explanation {
  const problem = problemOfProxy(proxy)
  if (problem !== undefined) return [problem, 'Set HTTPS_PROXY to a URL such as http://host:port.']
  const { host } = new URL(proxy)
  const [, status] = /^PROXY_RESPONDED_(\d+)$/.exec(code) ?? []
  const [message, next] = explainConnectionError(code, {
    ...checked,
    host: `the proxy ${host}`,
    setting: 'HTTPS_PROXY'
  })
  if (status === undefined) return [message.replace(/^t/, 'T'), next]
  return [
    `The proxy ${host} responds with ${status} and opens no tunnel to ${checked.host}.`,
    status === '407'
      ? 'Check the user name and the password in HTTPS_PROXY.'
      : 'Check HTTPS_PROXY, and whether the proxy allows this host. List hosts that need no proxy in NO_PROXY.'
  ]
}

/** Returns the reason why the server cannot use a proxy. The reason contains no part of its URL. */
function problemOfProxy(proxy: string): string | undefined {
  try {
    parseProxy(proxy)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** The names of the endpoints in messages, and their keys in the settings and in the metadata. */
const endpoints = {
  authorization: ['The authorization endpoint', 'authorizationEndpoint'],
  token: ['The token endpoint', 'tokenEndpoint'],
  userinfo: ['The user info endpoint', 'userinfoEndpoint'],
  revocation: ['The revocation endpoint', 'revocationEndpoint'],
  end_session: ['The end-session endpoint', 'endSessionEndpoint']
} as const

// The client aborts a revocation after 2 s, because a logout must not wait longer.
const REVOCATION_SECONDS = 2

/** A request to the identity provider, described for the messages of findings. */
export interface CheckedRequest {
  /** The name of the endpoint as the beginning of a sentence: `The token endpoint`. */
  readonly name: string
  readonly url: string
  /** The setting that contains the URL, or undefined for a built-in URL. */
  readonly setting: string | undefined
  readonly timeoutSeconds: number
}

/** Describes a request to an endpoint. */
export function requestTo(
  endpoint: keyof typeof endpoints,
  { platform }: Config,
  metadata: ProviderMetadata
): CheckedRequest {
  const [name, key] = endpoints[endpoint]
  const fromIssuer = platform.issuer === undefined ? undefined : 'platform.issuer'
  const { timeoutSeconds } = platform
  return {
    name,
    url: metadata[key] ?? '',
    setting: platform[key] === undefined ? fromIssuer : `platform.${key}`,
    timeoutSeconds: endpoint === 'revocation' ? Math.min(timeoutSeconds, REVOCATION_SECONDS) : timeoutSeconds
  }
}

/**
 * Returns the finding for a request to an endpoint that failed for a general reason, such as a network error or an unexpected
 * status. Rethrows any other error.
 */
export function findingOfEndpointError(error: unknown, config: Config, metadata: ProviderMetadata): Finding {
  const isOfProvider = error instanceof OAuthError || error instanceof ProviderError
  if (!isOfProvider || error.endpoint === 'discovery' || error.endpoint === 'jwks') throw error
  return findingOfError(error, requestTo(error.endpoint, config, metadata))
}

/** Does the same as `findingOfEndpointError` for a request that is already described. */
export function findingOfError(error: unknown, request: CheckedRequest): Finding {
  const { name, url, setting, timeoutSeconds } = request
  if (error instanceof OAuthError)
    return hasNoAccess(error) ? noAccess(request) : findingOfStatus(error.status, request, error.error)
  if (!(error instanceof ProviderError)) throw error
  if (error.status !== undefined && error.status >= 300) return findingOfStatus(error.status, request)
  if (error.problem === 'invalid_response')
    return failed(`${name} is unusable: ${detailOf(error)}.`, urlAdvice(request))
  const code = error.problem === 'timeout' ? 'ETIMEDOUT' : error.code
  const { protocol, host } = new URL(url)
  const proxy = protocol === 'https:' && OF_PROXY.test(code ?? '') ? outboundProxy(url) : undefined
  const checked = { host, setting, timeoutSeconds }
  const [message, next] =
    proxy === undefined ? explainConnectionError(code, checked) : explainProxyError(code, proxy, checked)
  return failed(`${name} cannot be reached: ${message}`, next)
}

/** True if the gateway in front of the platform says that the application has no access to the API product. */
export function hasNoAccess(error: unknown): boolean {
  return error instanceof OAuthError && error.gatewayCode === NO_ACCESS_CODE
}

/** Returns the finding for an application without access to the API product. */
export function noAccess({ name }: CheckedRequest): Finding {
  const message = `${name} responds with ${NO_ACCESS_CODE}: this application has no access to the API product.`
  return failed(
    message,
    "Compare platform.clientId with the application's page, and give the application access to the API there."
  )
}

/**
 * Returns the finding for an unexpected status.
 * @param error the registered error code, if the response had one
 */
export function findingOfStatus(status: number, request: CheckedRequest, error?: string): Finding {
  const { name, url } = request
  const response = `${name} responds with ${status}${error === undefined ? '' : ` ${error}`}`
  if (status === 429) return warning(`${response}, so it has received too many requests.`, 'Check again in a minute.')
  if (status >= 500) {
    const message = `${response}, which is a fault of the provider.`
    return failed(message, 'Check again later. Ask the provider if the problem persists.')
  }
  if (status === 404 || status === 405 || status === 410) {
    const { origin, pathname } = new URL(url)
    return failed(`${response}, so there is no such endpoint at ${origin}${pathname}.`, urlAdvice(request))
  }
  const isRedirect = status >= 300 && status < 400
  const problem = isRedirect ? 'but the server does not follow redirects' : 'which is an unexpected status'
  return failed(`${response}, ${problem}.`, urlAdvice(request))
}

/** Returns the advice to check the URL of the request. */
export function urlAdvice({ setting, url }: CheckedRequest): string {
  return setting === undefined
    ? `Look for a proxy or firewall between this machine and ${new URL(url).host}.`
    : `Compare ${setting} with the provider's documentation.`
}

/**
 * Returns the message without the name of the endpoint, because the finding already begins with this name. The message was
 * written by this server. Of the provider's response, it quotes only the issuer.
 */
function detailOf({ message }: ProviderError): string {
  return message.slice(message.indexOf(': ') + 2)
}
