/**
 * The endpoints of the identity provider. Each endpoint comes from its setting. If the setting has no value, the
 * endpoint comes from the discovery document of the configured issuer. If no issuer is configured either, the endpoint
 * of Autodesk Platform Services (APS) is used.
 */

import { quote } from '../config/errors.js'
import type { Config } from '../config/settings.js'
import { discoveredEndpointProblem, withoutUser } from '../config/urls.js'
import { isJsonObject } from '../support/json.js'
import { ProviderError } from './errors.js'
import { type Quirks, quirksOf } from './quirks.js'
import type { Transport } from './transport.js'

export interface ProviderMetadata {
  readonly issuer: string | undefined
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  /** Undefined if the provider has no user info endpoint, or if the operator disabled it. */
  readonly userinfoEndpoint: string | undefined
  /** Undefined if the provider has no revocation endpoint, or if the operator disabled it. */
  readonly revocationEndpoint: string | undefined
  /** Undefined if the provider has no end-session endpoint, or if the operator disabled it. */
  readonly endSessionEndpoint: string | undefined
  /**
   * The URL of the public keys of the provider. Undefined without a discovery document, or if the URL in the document
   * is unusable.
   */
  readonly jwksUri: string | undefined
  /** True if every response of the authorization endpoint has an `iss` parameter (RFC 9207 section 3). */
  readonly issParameterSupported: boolean
  /**
   * The value of `scopes_supported` in the discovery document. Undefined without a discovery document, or without this
   * value.
   */
  readonly scopesSupported: readonly string[] | undefined
  readonly quirks: Quirks
}

/**
 * Returns the metadata of the provider.
 * @param options.isSentOnce true if a failed request for the discovery document must not be repeated. Has no effect if
 *   the metadata is already known.
 */
type GetMetadata = (options?: { readonly isSentOnce: true }) => Promise<ProviderMetadata>

type Endpoints = Pick<Config['platform'], keyof typeof APS>

/** The endpoints of Authentication v2 of Autodesk Platform Services. */
export const APS = {
  issuer: 'https://developer.api.autodesk.com',
  authorizationEndpoint: 'https://developer.api.autodesk.com/authentication/v2/authorize',
  tokenEndpoint: 'https://developer.api.autodesk.com/authentication/v2/token',
  userinfoEndpoint: 'https://api.userprofile.autodesk.com/userinfo',
  revocationEndpoint: 'https://developer.api.autodesk.com/authentication/v2/revoke',
  endSessionEndpoint: 'https://developer.api.autodesk.com/authentication/v2/logout'
} as const

/** Returns the default value of a setting for an endpoint. Returns undefined for all other settings. */
export function defaultEndpoint(key: string): string | undefined {
  const name = key.replace(/^platform\./, '')
  return name.endsWith('Endpoint') && name in APS ? APS[name as keyof typeof APS] : undefined
}

/**
 * Creates the function that returns the metadata. If an issuer is configured, the first call of this function requests
 * the discovery document. If the request fails, the next call repeats it.
 */
export function createMetadata(platform: Endpoints, transport: Pick<Transport, 'call'>): GetMetadata {
  const { issuer } = platform
  if (issuer === undefined) {
    const configured = Promise.resolve(configuredMetadata(platform))
    return () => configured
  }
  let discovery: Promise<ProviderMetadata> | undefined
  return function metadata(options) {
    discovery ??= discover(issuer, options).catch((error: unknown) => {
      discovery = undefined
      throw error
    })
    return discovery
  }

  async function discover(issuer: string, options: Parameters<GetMetadata>[0]): Promise<ProviderMetadata> {
    const response = await transport.call({ endpoint: 'discovery', url: discoveryUrl(issuer), ...options })
    const { status, json: document, durationMs, retryAfterSeconds } = response
    const unusable = (detail: string) =>
      new ProviderError('discovery', 'unusable', detail, { durationMs, status, retryAfterSeconds })
    if (status !== 200) throw unusable(`it responded with ${status}`)
    if (!isJsonObject(document)) throw unusable('the response is not a JSON object')
    // OpenID Connect Discovery section 4.3: without this check, another issuer could impersonate the configured issuer.
    if (document.issuer !== issuer) throw unusable(otherIssuer(document.issuer, issuer))

    const urlOf = (name: string) => {
      const value = document[name]
      if (value === undefined) return undefined
      if (typeof value !== 'string') throw unusable(`its ${name} is not a string`)
      const problem = discoveredEndpointProblem(value, issuer)
      if (problem !== undefined) throw unusable(`its ${name} cannot be used: ${problem}`)
      return value
    }
    const required = (name: string) => {
      const value = urlOf(name)
      if (value === undefined) throw unusable(`it has no ${name}`)
      return value
    }
    const scopes = document.scopes_supported
    const authorizationEndpoint = platform.authorizationEndpoint ?? required('authorization_endpoint')
    const tokenEndpoint = platform.tokenEndpoint ?? required('token_endpoint')
    return {
      issuer,
      authorizationEndpoint,
      tokenEndpoint,
      // OpenID Connect Discovery section 3 recommends the user info endpoint but does not require it.
      userinfoEndpoint: optional(platform.userinfoEndpoint, urlOf('userinfo_endpoint')),
      revocationEndpoint: optional(platform.revocationEndpoint, urlOf('revocation_endpoint')),
      endSessionEndpoint: optional(platform.endSessionEndpoint, urlOf('end_session_endpoint')),
      jwksUri: usableUrl(document.jwks_uri, issuer),
      issParameterSupported: document.authorization_response_iss_parameter_supported === true,
      scopesSupported: Array.isArray(scopes) ? scopes.filter(name => typeof name === 'string') : undefined,
      quirks: quirksOf({ issuer, authorizationEndpoint, tokenEndpoint })
    }
  }
}

function configuredMetadata(platform: Endpoints): ProviderMetadata {
  const authorizationEndpoint = platform.authorizationEndpoint ?? APS.authorizationEndpoint
  const tokenEndpoint = platform.tokenEndpoint ?? APS.tokenEndpoint
  return {
    issuer: authorizationEndpoint === APS.authorizationEndpoint ? APS.issuer : undefined,
    authorizationEndpoint,
    tokenEndpoint,
    userinfoEndpoint: optional(platform.userinfoEndpoint, APS.userinfoEndpoint),
    revocationEndpoint: optional(platform.revocationEndpoint, APS.revocationEndpoint),
    endSessionEndpoint: optional(platform.endSessionEndpoint, APS.endSessionEndpoint),
    jwksUri: undefined,
    issParameterSupported: false,
    scopesSupported: undefined,
    quirks: quirksOf({ authorizationEndpoint, tokenEndpoint })
  }
}

/** Returns the URL of the discovery document of an issuer (OpenID Connect Discovery section 4). */
export function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

function otherIssuer(named: unknown, configured: string): string {
  if (typeof named !== 'string') return 'it has no issuer'
  const slash = named.replace(/\/$/, '') === configured.replace(/\/$/, '') ? ' (only the slash at the end differs)' : ''
  return `its issuer is ${quote(withoutUser(named))}, but ${quote(configured)} is configured${slash}`
}

// Only back-channel logout needs the keys of the provider, so an unusable `jwks_uri` must not make every login fail.
function usableUrl(value: unknown, issuer: string): string | undefined {
  return typeof value === 'string' && discoveredEndpointProblem(value, issuer) === undefined ? value : undefined
}

function optional(configured: string | undefined, defaultUrl: string | undefined): string | undefined {
  return configured === 'none' ? undefined : (configured ?? defaultUrl)
}
