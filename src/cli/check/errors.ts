import type { Config } from '../../config/settings.js'
import { OAuthError, ProviderError } from '../../provider/errors.js'
import { type Finding, failed, warning } from './report.js'

/** Explains why a request or connection failed, and gives advice. */

export interface Place {
  readonly host: string
  /** The setting that contains the address, or undefined for a built-in address. */
  readonly setting: string | undefined
  readonly timeoutSeconds: number
}

export interface Explanation {
  readonly message: string
  readonly next: string
}

export function explainConnectionError(code: string | undefined, place: Place): Explanation {
  const found = kinds.find(({ codes }) => code !== undefined && codes.test(code))
  return (found ?? other).explain(place, code !== undefined && /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'unknown reason')
}

interface Kind {
  readonly codes: RegExp
  readonly explain: (place: Place, code: string) => Explanation
}

const inSetting = ({ setting }: Place) => (setting === undefined ? '' : ` in ${setting}`)

const kinds: readonly Kind[] = [
  {
    codes: /^ENOTFOUND$/,
    explain: (place, code) => ({
      message: `DNS does not know the name of ${place.host} (${code}).`,
      next: `Check the name${inSetting(place)}, and whether this machine can resolve other names.`
    })
  },
  {
    codes: /^EAI_/,
    explain: ({ host }, code) => ({
      message: `DNS did not answer the query for ${host} (${code}).`,
      next: 'Check the DNS servers of this machine or container.'
    })
  },
  {
    codes: /^ECONNREFUSED$/,
    explain: (place, code) => ({
      message: `${place.host} refuses connections (${code}).`,
      next: `Check host and port${inSetting(place)}. If they are right, no server listens there or a firewall rejects the connection.`
    })
  },
  {
    codes: /^E(NET|HOST)UNREACH$/,
    explain: ({ host }, code) => ({
      message: `There is no network route to ${host} (${code}).`,
      next: 'Check the network and the firewall of this machine.'
    })
  },
  {
    codes: /^ETIMEDOUT$/,
    explain: ({ host, timeoutSeconds }) => ({
      message: `${host} did not answer within ${timeoutSeconds} s.`,
      next: 'Check whether a firewall blocks the connection, or whether this machine needs a proxy (HTTPS_PROXY).'
    })
  },
  {
    codes: /^(ECONNRESET|ECONNABORTED|EPIPE)$/,
    explain: ({ host }, code) => ({
      message: `${host} closed the connection (${code}).`,
      next: 'Check again. If the problem persists, look for a firewall or proxy between this machine and that host.'
    })
  },
  {
    codes: /^CERT_HAS_EXPIRED$/,
    explain: ({ host }, code) => ({
      message: `The certificate of ${host} has expired (${code}).`,
      next: 'Check the clock of this machine. If the clock is right, the operator of that host must renew the certificate.'
    })
  },
  {
    codes: /^CERT_NOT_YET_VALID$/,
    explain: ({ host }, code) => ({
      message: `The certificate of ${host} is not valid yet (${code}).`,
      next: 'Check the clock of this machine, which is probably slow.'
    })
  },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    explain: (place, code) => ({
      message: `The certificate of ${place.host} is for another name (${code}).`,
      next: `Check the host${inSetting(place)}. If the host is right, another server answers in its place.`
    })
  },
  {
    codes: /CERT|^UNABLE_TO_/,
    explain: ({ host }, code) => ({
      message: `This machine does not trust the certificate of ${host} (${code}).`,
      next: 'If your own authority or an inspecting proxy signed it, set NODE_EXTRA_CA_CERTS to the file of its certificate.'
    })
  },
  {
    codes: /^EPROTO$|^ERR_SSL_/,
    explain: (place, code) => ({
      message: `${place.host} does not speak TLS as expected (${code}).`,
      next: `Check scheme and port${inSetting(place)}. The port must speak TLS.`
    })
  }
]

const other: Kind = {
  codes: /./,
  explain: (place, code) => ({
    message: `The connection to ${place.host} failed (${code}).`,
    next: `Check the address${inSetting(place)} and the network of this machine.`
  })
}

/** A request to the identity provider, described for the messages of findings. */
export interface CheckedRequest {
  /** The name of the check that sends the request. */
  readonly check: string
  /** The name of the endpoint as the beginning of a sentence: `The token endpoint`. */
  readonly endpoint: string
  readonly url: string
  /** The setting that contains the address, or undefined for a built-in address. */
  readonly setting: string | undefined
  readonly timeoutSeconds: number
}

type EndpointKey = {
  [Key in keyof Config['platform']]: Key extends `${string}Endpoint` ? Key : never
}[keyof Config['platform']]

/** Returns the setting that determines the address of an endpoint, or undefined for a built-in address. */
export function settingOfEndpoint({ platform }: Config, key: EndpointKey): string | undefined {
  if (platform[key] !== undefined) return `platform.${key}`
  return platform.issuer === undefined ? undefined : 'platform.issuer'
}

/**
 * Returns the finding for a request that failed for a general reason, such as a network error or an unexpected status.
 * Throws `error` again if it is not an OAuthError or ProviderError.
 */
export function findingOfError(error: unknown, request: CheckedRequest): Finding {
  const { check, endpoint, url, setting, timeoutSeconds } = request
  if (error instanceof OAuthError) return findingOfStatus(error.status, request, error.error)
  if (!(error instanceof ProviderError)) throw error
  if (error.status !== undefined && error.status >= 300) return findingOfStatus(error.status, request)
  if (error.problem === 'unusable') {
    return failed(check, `${endpoint} is unusable: ${detailOf(error)}.`, checkAddress(request))
  }
  const place = { host: new URL(url).host, setting, timeoutSeconds }
  const { message, next } = explainConnectionError(error.problem === 'timeout' ? 'ETIMEDOUT' : error.code, place)
  return failed(check, `${endpoint} cannot be reached: ${message}`, next)
}

/**
 * Returns the finding for an unexpected status.
 * @param error the registered error code, if the response had one
 */
export function findingOfStatus(status: number, request: CheckedRequest, error?: string): Finding {
  const { check, endpoint, url } = request
  const answer = `${endpoint} answers ${status}${error === undefined ? '' : ` ${error}`}`
  if (status === 429)
    return warning(check, `${answer}, so it has received too many requests.`, 'Check again in a minute.')
  if (status >= 500)
    return failed(
      check,
      `${answer}, which is a fault of the provider.`,
      'Check again later. Ask the provider if the problem persists.'
    )
  if (status === 404 || status === 405 || status === 410) {
    return failed(check, `${answer}, so there is no such endpoint at ${withoutQuery(url)}.`, checkAddress(request))
  }
  if (status >= 300 && status < 400) {
    return failed(check, `${answer}, but the server does not follow redirects.`, checkAddress(request))
  }
  return failed(check, `${answer}, which is an unexpected status.`, checkAddress(request))
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

// This server writes the message about an unusable response. The message contains no text of the response except the issuer.
function detailOf({ message }: ProviderError): string {
  return message.slice(message.indexOf(': ') + 2)
}
