import type { Config } from '../../config/settings.js'
import { OAuthError, ProviderError } from '../../provider/errors.js'
import { explainConnectionError } from './connection-errors.js'
import { type Finding, findingsFor } from './finding.js'

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
  const { failed } = findingsFor(request.check)
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
  const { check, endpoint, url } = request
  const { warning, failed } = findingsFor(check)
  const answer = `${endpoint} answers ${status}${error === undefined ? '' : ` ${error}`}`
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

// This server writes the message about an unusable response. The message contains no text of the response except the issuer.
function detailOf({ message }: ProviderError): string {
  return message.slice(message.indexOf(': ') + 2)
}
