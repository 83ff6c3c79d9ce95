/** The findings of the checks, and the explanations of requests and connections that fail. */
import type { Config } from '../../config/settings.js'
import { OAuthError, ProviderError } from '../../provider/errors.js'

export type Status = 'ok' | 'warning' | 'failed'

/** One result of a check. */
export interface Finding {
  readonly status: Status
  /** Whole sentences, without a secret and without text from the provider. */
  readonly message: string
  /** Advice on what to do. */
  readonly next?: string
}

/** The finding that a setting or an endpoint is right. */
export function ok(message: string): Finding {
  return { status: 'ok', message }
}

/** A finding that the operator should know, but that does not keep the server from working. */
export function warning(message: string, next: string): Finding {
  return { status: 'warning', message, next }
}

/** A finding that keeps the server from working. It makes the exit code 1. */
export function failed(message: string, next: string): Finding {
  return { status: 'failed', message, next }
}

export interface CheckedHost {
  readonly host: string
  /** The setting that contains the address, or undefined for a built-in address. */
  readonly setting: string | undefined
  readonly timeoutSeconds: number
}

interface Explanation {
  readonly message: string
  readonly next: string
}

export function explainConnectionError(code: string | undefined, place: CheckedHost): Explanation {
  const { host, setting, timeoutSeconds } = place
  const inSetting = setting === undefined ? '' : ` in ${setting}`
  const shown = code !== undefined && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'unknown reason'
  const rows: readonly (readonly [codes: RegExp, message: string, next: string])[] = [
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
      `The certificate of ${host} is for another name (${shown}).`,
      `Check the host${inSetting}. If the host is right, another server responds instead of it.`
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
    ]
  ]
  const [, message, next] = rows.find(([codes]) => code !== undefined && codes.test(code)) ?? [
    undefined,
    `The connection to ${host} failed (${shown}).`,
    `Check the address${inSetting} and the network of this machine.`
  ]
  return { message, next }
}

/** A request to the identity provider, described for the messages of findings. */
export interface CheckedRequest {
  /** The name of the endpoint as the beginning of a sentence: `The token endpoint`. */
  readonly endpoint: string
  readonly url: string
  /** The setting that contains the address, or undefined for a built-in address. */
  readonly setting: string | undefined
  readonly timeoutSeconds: number
}

const endpointNames = {
  authorizationEndpoint: 'The authorization endpoint',
  tokenEndpoint: 'The token endpoint',
  userinfoEndpoint: 'The user info endpoint',
  revocationEndpoint: 'The revocation endpoint',
  endSessionEndpoint: 'The end-session endpoint'
}

/** Describes a request to the endpoint `key`, whose address is `url`. */
export function requestTo({ platform }: Config, key: keyof typeof endpointNames, url: string): CheckedRequest {
  const fromIssuer = platform.issuer === undefined ? undefined : 'platform.issuer'
  return {
    endpoint: endpointNames[key],
    url,
    setting: platform[key] === undefined ? fromIssuer : `platform.${key}`,
    timeoutSeconds: platform.timeoutSeconds
  }
}

/**
 * Returns the finding for a request that failed for a general reason, such as a network error or an unexpected status.
 * Throws `error` again if it is not an OAuthError or ProviderError.
 */
export function findingOfError(error: unknown, request: CheckedRequest): Finding {
  const { endpoint, url, setting, timeoutSeconds } = request
  if (error instanceof OAuthError) return findingOfStatus(error.status, request, error.error)
  if (!(error instanceof ProviderError)) throw error
  if (error.status !== undefined && error.status >= 300) return findingOfStatus(error.status, request)
  if (error.problem === 'unusable') {
    return failed(`${endpoint} is unusable: ${detailOf(error)}.`, checkAddress(request))
  }
  const place = { host: new URL(url).host, setting, timeoutSeconds }
  const { message, next } = explainConnectionError(error.problem === 'timeout' ? 'ETIMEDOUT' : error.code, place)
  return failed(`${endpoint} cannot be reached: ${message}`, next)
}

/**
 * Returns the finding for an unexpected status.
 * @param error the registered error code, if the response had one
 */
export function findingOfStatus(status: number, request: CheckedRequest, error?: string): Finding {
  const { endpoint, url } = request
  const answer = `${endpoint} responds with ${status}${error === undefined ? '' : ` ${error}`}`
  if (status === 429) return warning(`${answer}, so it has received too many requests.`, 'Check again in a minute.')
  if (status >= 500)
    return failed(
      `${answer}, which is a fault of the provider.`,
      'Check again later. Ask the provider if the problem persists.'
    )
  if (status === 404 || status === 405 || status === 410) {
    return failed(`${answer}, so there is no such endpoint at ${withoutQuery(url)}.`, checkAddress(request))
  }
  if (status >= 300 && status < 400) {
    return failed(`${answer}, but the server does not follow redirects.`, checkAddress(request))
  }
  return failed(`${answer}, which is an unexpected status.`, checkAddress(request))
}

/** Returns the advice to check the address of the request. */
export function checkAddress({ setting, url }: CheckedRequest): string {
  return setting === undefined
    ? `Look for a proxy or firewall between this machine and ${new URL(url).host}.`
    : `Compare ${setting} with the provider's documentation.`
}

function withoutQuery(address: string): string {
  const { origin, pathname } = new URL(address)
  return origin + pathname
}

/**
 * Returns the message without the name of the endpoint, because the finding already begins with this name. The message
 * was written by this server. The only part of the response in it is the issuer.
 */
function detailOf({ message }: ProviderError): string {
  return message.slice(message.indexOf(': ') + 2)
}
