/** Explains requests to the identity provider that fail. */
import { outboundProxy } from '../../config/outbound-proxy.js'
import type { Config } from '../../config/settings.js'
import type { ProviderMetadata } from '../../provider/metadata.js'
import { OAuthError, ProviderError } from '../../provider/provider-error.js'
import { NO_ACCESS_CODE } from '../../provider/quirks.js'
import { type Finding, failed, warning } from './findings.js'
import { type CheckedHost, explainCallError } from './network-errors.js'

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
export interface CheckedRequest extends Omit<CheckedHost, 'host'> {
  /** The name of the endpoint as the beginning of a sentence: `The token endpoint`. */
  readonly name: string
  readonly url: string
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
  if (!(error instanceof ProviderError) || error.endpoint === 'discovery' || error.endpoint === 'jwks') throw error
  return findingOfError(error, requestTo(error.endpoint, config, metadata))
}

/** Does the same as `findingOfEndpointError` for a request that is already described. */
export function findingOfError(error: unknown, request: CheckedRequest): Finding {
  const { name, url, setting, timeoutSeconds } = request
  if (error instanceof OAuthError)
    return hasNoAccess(error) ? noAccess(request) : findingOfStatus(error.status, request, error.error)
  if (!(error instanceof ProviderError)) throw error
  if (error.status !== undefined && error.status >= 300) return findingOfStatus(error.status, request)
  // The finding begins with the name of the endpoint, so the name in the message of the error is left out.
  const detail = error.message.slice(error.message.indexOf(': ') + 2)
  if (error.problem === 'invalid_response') return failed`${name} is unusable: ${detail}. ${urlAdvice(request)}`
  const code = error.problem === 'timeout' ? 'ETIMEDOUT' : error.code
  const { protocol, host } = new URL(url)
  const proxy = protocol === 'https:' ? outboundProxy(url) : undefined
  return failed`${name} cannot be reached: ${explainCallError(code, proxy, { host, setting, timeoutSeconds })}`
}

/** True if the gateway in front of the platform says that the application has no access to the API product. */
export function hasNoAccess(error: unknown): boolean {
  return error instanceof OAuthError && error.gatewayCode === NO_ACCESS_CODE
}

/** Returns the finding for an application without access to the API product. */
export function noAccess({ name }: CheckedRequest): Finding {
  return failed`${name} responds with ${NO_ACCESS_CODE}: this application has no access to the API product. Next: Compare platform.clientId with the application's page, and give the application access to the API there.`
}

/**
 * Returns the finding for an unexpected status.
 * @param error the registered error code, if the response had one
 */
export function findingOfStatus(status: number, request: CheckedRequest, error?: string): Finding {
  const { name, url } = request
  const seen = `${name} responds with ${status}${error === undefined ? '' : ` ${error}`}`
  const advice = urlAdvice(request)
  if (status === 429) return warning`${seen}, so it has received too many requests. Next: Check again in a minute.`
  if (status >= 500)
    return failed`${seen}, which is a fault of the provider. Next: Check again later. Ask the provider if the problem persists.`
  const { origin, pathname } = new URL(url)
  if (status === 404 || status === 405 || status === 410)
    return failed`${seen}, so there is no such endpoint at ${origin}${pathname}. ${advice}`
  if (status < 400) return failed`${seen}, but the server does not follow redirects. ${advice}`
  return failed`${seen}, which is an unexpected status. ${advice}`
}

/** Returns the advice to check the URL of the request. */
export function urlAdvice({ setting, url }: CheckedRequest): string {
  return setting === undefined
    ? `Next: Look for a proxy or firewall between this machine and ${new URL(url).host}.`
    : `Next: Compare ${setting} with the provider's documentation.`
}

/** Advice for a client that may not use the authorization code grant. */
export const webApplicationAdvice =
  'Next: Register the application as a web application that may use the authorization code grant.'
