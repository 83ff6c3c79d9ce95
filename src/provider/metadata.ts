/**
 * The endpoints of the identity provider. Each endpoint comes from its setting. If the setting has no value, the
 * endpoint comes from the discovery document of the configured issuer. If no issuer is configured either, the endpoint
 * of Autodesk Platform Services (APS) is used.
 */

import { isJsonObject } from '../base/json.js'
import type { Config } from '../config/settings.js'
import { quote } from '../config/types/problem.js'
import { discoveredEndpointProblem, maskUrl } from '../config/types/urls.js'
import type { TransportResponse } from './attempt.js'
import { type Candidate, candidateOf } from './moved-endpoints.js'
import { type Endpoint, ProviderError } from './provider-error.js'
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
  /** The endpoints of the discovery document that cannot be used and are therefore off, as `its … cannot be used: …`. */
  readonly unusable: readonly string[]
  readonly quirks: Quirks
}

export type GetMetadata = () => Promise<ProviderMetadata>

/**
 * Returns the URL of an endpoint, or undefined if the provider has none. A configured endpoint works while discovery does not.
 * @throws ProviderError if the endpoint is unknown, because discovery does not work
 */
export type GetEndpoint = <Name extends EndpointName>(name: Name) => Promise<ProviderMetadata[Name]>

type EndpointName = Exclude<keyof typeof APS, 'issuer'>

export interface Metadata extends GetMetadata {
  /** Notes whether a request to an endpoint shows that it may have moved. If so, the document is read again in the background. */
  noteRequest(endpoint: Endpoint, mayHaveMoved: boolean): void
}

export interface MetadataOptions {
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /**
   * Is called once for each unusable endpoint, and when a document names a token endpoint on another origin.
   */
  readonly report?: (fields: { readonly event: string }, problem: string) => void
}

type Endpoints = Pick<Config['platform'], keyof typeof APS | 'timeoutSeconds'>

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

const MINUTE_MS = 60_000
const DAY_MS = 1440 * MINUTE_MS

/**
 * Creates the function that returns the metadata. If an issuer is configured, the first call of this function requests
 * the discovery document. If the request fails, the next call repeats it. The document is read again in the background once a day,
 * and at most once a minute while an endpoint may have moved. Until a complete document counts, the earlier one does.
 */
export function createMetadata(
  platform: Endpoints,
  transport: Pick<Transport, 'call'>,
  { now = Date.now, report = () => {} }: MetadataOptions = {}
): Metadata {
  const { issuer } = platform
  if (issuer === undefined) {
    const configured = Promise.resolve(configuredMetadata(platform))
    return Object.assign(() => configured, { noteRequest() {} })
  }
  let discovery: Promise<ProviderMetadata> | undefined
  let readAt = Number.NEGATIVE_INFINITY
  let dueAt = Number.POSITIVE_INFINITY
  let candidate: Candidate | undefined
  let tokenFails = false
  const reported = new Set<string>()

  function metadata(): Promise<ProviderMetadata> {
    discovery ??= read(issuer as string).catch((error: unknown) => {
      discovery = undefined
      throw error
    })
    if (now() >= dueAt) void readAgain(discovery)
    return discovery
  }

  async function read(issuer: string): Promise<ProviderMetadata> {
    readAt = now()
    const found = await discover(issuer)
    // The replicas of a server do not read at the same time.
    dueAt = now() + DAY_MS * (0.9 + 0.2 * Math.random())
    for (const problem of found.unusable) reportOnce('endpoint_invalid', problem)
    return found
  }

  /** Does not reject, because the earlier document still counts. */
  async function readAgain(earlier: Promise<ProviderMetadata>): Promise<void> {
    if (Math.abs(now() - readAt) < MINUTE_MS) return
    try {
      const [old, found] = await Promise.all([earlier, read(issuer as string)])
      candidate = candidateOf(old, found, { earlier: candidate, now: readAt, tokenFails })
      if (new URL(old.tokenEndpoint).origin !== new URL(found.tokenEndpoint).origin) {
        const both = `the token endpoint ${maskUrl(found.tokenEndpoint)} in place of ${maskUrl(old.tokenEndpoint)}`
        reportOnce('endpoint_moved', `it names ${both}${candidate ? ', which does not count yet' : ''}`)
      }
      if (!candidate) discovery = Promise.resolve(found)
    } catch {}
  }

  function reportOnce(event: string, problem: string): void {
    if (!reported.has(problem)) report({ event }, problem)
    reported.add(problem)
  }

  return Object.assign(metadata, {
    noteRequest(endpoint: Endpoint, mayHaveMoved: boolean) {
      if (endpoint === 'token') tokenFails = mayHaveMoved
      if (mayHaveMoved && endpoint !== 'discovery' && discovery) void readAgain(discovery)
    }
  })

  async function discover(issuer: string): Promise<ProviderMetadata> {
    const response = await requestDocument(issuer)
    const { status, json: document, durationMs, retryAfterSeconds } = response
    const unusable = (detail: string) =>
      new ProviderError('discovery', 'invalid_response', detail, { durationMs, status, retryAfterSeconds })
    if (status !== 200) throw unusable(`it responded with ${status}`)
    if (!isJsonObject(document)) throw unusable('the response is not a JSON object')
    // OpenID Connect Discovery section 4.3: without this check, another issuer could impersonate the configured issuer.
    if (document.issuer !== issuer) throw unusable(otherIssuer(document.issuer, issuer))

    const required = (name: string) => {
      const found = endpointIn(document, name, issuer)
      if ('problem' in found) throw unusable(found.problem)
      return found.url
    }
    const problems: string[] = []
    // Logins work without these endpoints, so an unusable one must not make every login fail.
    const optional = (name: string, configured?: string) => {
      if (configured !== undefined) return unlessNone(configured)
      const found = endpointIn(document, name, issuer)
      if ('url' in found) return found.url
      if (document[name] !== undefined) problems.push(found.problem)
      return undefined
    }
    const scopes = document.scopes_supported
    const authorizationEndpoint = platform.authorizationEndpoint ?? required('authorization_endpoint')
    const tokenEndpoint = platform.tokenEndpoint ?? required('token_endpoint')
    return {
      issuer,
      authorizationEndpoint,
      tokenEndpoint,
      // OpenID Connect Discovery section 3 recommends the user info endpoint but does not require it.
      userinfoEndpoint: optional('userinfo_endpoint', platform.userinfoEndpoint),
      revocationEndpoint: optional('revocation_endpoint', platform.revocationEndpoint),
      endSessionEndpoint: optional('end_session_endpoint', platform.endSessionEndpoint),
      jwksUri: optional('jwks_uri'),
      issParameterSupported: document.authorization_response_iss_parameter_supported === true,
      scopesSupported: Array.isArray(scopes) ? scopes.filter(name => typeof name === 'string') : undefined,
      unusable: problems,
      quirks: quirksOf({ issuer, authorizationEndpoint, tokenEndpoint })
    }
  }

  /**
   * Requests the discovery document, and follows redirects. Each target must be a URL that the document itself may contain, so a
   * redirect gains nothing that the document could not name. The requests have no credentials.
   */
  async function requestDocument(issuer: string): Promise<TransportResponse> {
    const startedAt = performance.now()
    const timeoutMs = platform.timeoutSeconds * 1000
    let url = discoveryUrl(issuer)
    for (let redirects = 0; ; redirects++) {
      const leftMs = Math.max(1, Math.round(timeoutMs - (performance.now() - startedAt)))
      const response = await transport.call({ endpoint: 'discovery', url, timeoutMs: leftMs })
      const { status, location } = response
      if (!REDIRECTS.has(status) || location === undefined || redirects === MAX_REDIRECTS) return response
      const target = URL.canParse(location, url) ? new URL(location, url).href : location
      const problem = discoveredEndpointProblem(target, issuer)
      const detail = `it redirects to a URL that cannot be used: ${problem}`
      if (problem !== undefined) throw new ProviderError('discovery', 'invalid_response', detail)
      url = target
    }
  }
}

export function createEndpoint(platform: Endpoints, metadata: GetMetadata): GetEndpoint {
  return async function endpoint(name) {
    const configured = platform[name]
    if (configured === undefined) return (await metadata())[name]
    return unlessNone(configured) as ProviderMetadata[typeof name]
  }
}

const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

type FoundEndpoint = { readonly url: string } | { readonly problem: string }

function endpointIn(document: Readonly<Record<string, unknown>>, name: string, issuer: string): FoundEndpoint {
  const value = document[name]
  if (value === undefined || value === null || value === '') return { problem: `it has no ${name}` }
  if (typeof value !== 'string') return { problem: `its ${name} is not a string` }
  const problem = discoveredEndpointProblem(value, issuer)
  return problem === undefined ? { url: value } : { problem: `its ${name} cannot be used: ${problem}` }
}

/**
 * Returns the issuer without a discovery request. Undefined if the endpoints are configured without an issuer, and the
 * authorization endpoint is not that of APS.
 */
export function issuerOf({ issuer, authorizationEndpoint = APS.authorizationEndpoint }: Endpoints): string | undefined {
  return issuer ?? (authorizationEndpoint === APS.authorizationEndpoint ? APS.issuer : undefined)
}

function configuredMetadata(platform: Endpoints): ProviderMetadata {
  const authorizationEndpoint = platform.authorizationEndpoint ?? APS.authorizationEndpoint
  const tokenEndpoint = platform.tokenEndpoint ?? APS.tokenEndpoint
  return {
    issuer: issuerOf(platform),
    authorizationEndpoint,
    tokenEndpoint,
    userinfoEndpoint: unlessNone(platform.userinfoEndpoint ?? APS.userinfoEndpoint),
    revocationEndpoint: unlessNone(platform.revocationEndpoint ?? APS.revocationEndpoint),
    endSessionEndpoint: unlessNone(platform.endSessionEndpoint ?? APS.endSessionEndpoint),
    jwksUri: undefined,
    issParameterSupported: false,
    scopesSupported: undefined,
    unusable: [],
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
  return `its issuer is ${quote(maskUrl(named))}, but ${quote(maskUrl(configured))} is configured${slash}`
}

function unlessNone(url: string): string | undefined {
  return url === 'none' ? undefined : url
}
