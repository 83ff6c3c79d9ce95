/** Where the identity provider's endpoints are: those of APS, configured one by one, or discovered from an issuer. */
import { discoveredEndpointProblem, withoutUser } from '../config/addresses.js'
import { quote } from '../config/quote.js'
import type { Config } from '../config/settings.js'
import { UpstreamError } from './errors.js'
import { isJsonObject } from './json.js'
import type { Transport } from './transport.js'

export interface ProviderMetadata {
  readonly issuer: string | undefined
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly userinfoEndpoint: string
  /** Undefined: the provider has none, or it was switched off. */
  readonly revocationEndpoint: string | undefined
  readonly endSessionEndpoint: string | undefined
  /** RFC 9207 section 3: every answer of the authorization endpoint carries `iss`. */
  readonly issParameterSupported: boolean
  readonly isDiscovered: boolean
}

type Endpoints = Pick<
  Config['platform'],
  | 'issuer'
  | 'authorizationEndpoint'
  | 'tokenEndpoint'
  | 'userinfoEndpoint'
  | 'revocationEndpoint'
  | 'endSessionEndpoint'
>

/** Authentication v2 of Autodesk Platform Services. */
export const APS = {
  issuer: 'https://developer.api.autodesk.com',
  authorizationEndpoint: 'https://developer.api.autodesk.com/authentication/v2/authorize',
  tokenEndpoint: 'https://developer.api.autodesk.com/authentication/v2/token',
  userinfoEndpoint: 'https://api.userprofile.autodesk.com/userinfo',
  revocationEndpoint: 'https://developer.api.autodesk.com/authentication/v2/revoke',
  endSessionEndpoint: 'https://developer.api.autodesk.com/authentication/v2/logout'
} as const

/** The endpoint of APS that stands in for a setting such as `platform.tokenEndpoint`; undefined for other settings. */
export function defaultEndpoint(key: string): string | undefined {
  const name = key.replace(/^platform\./, '')
  return name.endsWith('Endpoint') && name in APS ? APS[name as keyof typeof APS] : undefined
}

/** Gives the metadata, fetching it at the first call if it must be discovered; a failure is tried again at the next. */
export function createMetadata(platform: Endpoints, transport: Transport): () => Promise<ProviderMetadata> {
  const { issuer } = platform
  if (issuer === undefined) {
    const configured = Promise.resolve(configuredMetadata(platform))
    return () => configured
  }
  let discovery: Promise<ProviderMetadata> | undefined
  return function metadata() {
    discovery ??= discover(issuer, platform, transport).catch((error: unknown) => {
      discovery = undefined
      throw error
    })
    return discovery
  }
}

function configuredMetadata(platform: Endpoints): ProviderMetadata {
  const authorizationEndpoint = platform.authorizationEndpoint ?? APS.authorizationEndpoint
  return {
    issuer: authorizationEndpoint === APS.authorizationEndpoint ? APS.issuer : undefined,
    authorizationEndpoint,
    tokenEndpoint: platform.tokenEndpoint ?? APS.tokenEndpoint,
    userinfoEndpoint: platform.userinfoEndpoint ?? APS.userinfoEndpoint,
    revocationEndpoint: optional(platform.revocationEndpoint, APS.revocationEndpoint),
    endSessionEndpoint: optional(platform.endSessionEndpoint, APS.endSessionEndpoint),
    issParameterSupported: false,
    isDiscovered: false
  }
}

async function discover(issuer: string, platform: Endpoints, transport: Transport): Promise<ProviderMetadata> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const response = await transport.call({ endpoint: 'discovery', url })
  const { status, json: document, durationMs, retryAfterSeconds } = response
  const unusable = (detail: string) =>
    new UpstreamError('discovery', 'unusable', detail, { durationMs, status, retryAfterSeconds })
  if (status !== 200) throw unusable(`it answered ${status}`)
  if (!isJsonObject(document)) throw unusable('the answer is not a JSON object')
  // OpenID Connect Discovery section 4.3: otherwise another issuer could speak for this one.
  if (document.issuer !== issuer) throw unusable(otherIssuer(document.issuer, issuer))

  const address = (name: string) => {
    const value = document[name]
    if (value === undefined) return undefined
    if (typeof value !== 'string') throw unusable(`its ${name} is not a text`)
    const problem = discoveredEndpointProblem(value, issuer)
    if (problem !== undefined) throw unusable(`its ${name} cannot be used: ${problem}`)
    return value
  }
  const required = (name: string) => {
    const value = address(name)
    if (value === undefined) throw unusable(`it has no ${name}`)
    return value
  }
  return {
    issuer,
    authorizationEndpoint: platform.authorizationEndpoint ?? required('authorization_endpoint'),
    tokenEndpoint: platform.tokenEndpoint ?? required('token_endpoint'),
    userinfoEndpoint: platform.userinfoEndpoint ?? required('userinfo_endpoint'),
    revocationEndpoint: optional(platform.revocationEndpoint, address('revocation_endpoint')),
    endSessionEndpoint: optional(platform.endSessionEndpoint, address('end_session_endpoint')),
    issParameterSupported: document.authorization_response_iss_parameter_supported === true,
    isDiscovered: true
  }
}

function otherIssuer(named: unknown, configured: string): string {
  if (typeof named !== 'string') return 'it names no issuer'
  const slash = named.replace(/\/$/, '') === configured.replace(/\/$/, '') ? '; only the slash at the end differs' : ''
  return `it names the issuer ${quote(withoutUser(named))}, but ${quote(configured)} is configured${slash}`
}

function optional(configured: string | undefined, otherwise: string | undefined): string | undefined {
  return configured === 'none' ? undefined : (configured ?? otherwise)
}
