import { randomBytes } from 'node:crypto'
import { signingKeyOf } from '../../config/client-key.js'
import { quote } from '../../config/errors.js'
import { outboundProxy } from '../../config/outbound-proxy.js'
import type { Config } from '../../config/settings.js'
import { withoutUser } from '../../config/urls.js'
import type { Mode } from '../../modes/mode.js'
import { createMode } from '../../modes/modes.js'
import { createIdentityProvider, type IdentityProvider } from '../../provider/client.js'
import { type Endpoint, OAuthError, ProviderError } from '../../provider/errors.js'
import { createMetadata, discoveryUrl, type ProviderMetadata } from '../../provider/metadata.js'
import { createTransport, type Transport } from '../../provider/transport.js'
import { type CheckedRequest, checkAddress, findingOfError, requestTo } from './errors.js'
import { type Finding, failed, ok, warning } from './report.js'

/** The client of the identity provider, as the server uses it. All requests of the checks share one time limit. */
export interface Provider {
  readonly config: Config
  readonly idp: IdentityProvider
  readonly mode: Mode
  readonly transport: Transport
  /** The dates of the provider's responses, in the order of their arrival. */
  readonly clockReadings: readonly ClockReading[]
}

/** The time of the provider at one response, and the time of this machine before and after it. */
export interface ClockReading {
  readonly endpoint: Endpoint
  /** The Date header, in milliseconds since the epoch. */
  readonly date: number
  readonly sentAt: number
  readonly receivedAt: number
}

export function openProvider(config: Config, now: () => number): Provider {
  const timeoutMs = config.platform.timeoutSeconds * 1000
  const deadline = performance.now() + timeoutMs
  const inner = createTransport(timeoutMs)
  const clockReadings: ClockReading[] = []
  const transport: Transport = {
    ...inner,
    async call(request) {
      const remainingMs = Math.max(1, Math.round(deadline - performance.now()))
      const sentAt = now()
      const response = await inner.call({
        ...request,
        timeoutMs: Math.min(request.timeoutMs ?? remainingMs, remainingMs)
      })
      const { date } = response
      if (date !== undefined) clockReadings.push({ endpoint: request.endpoint, date, sentAt, receivedAt: now() })
      return response
    }
  }
  const idp = createIdentityProvider(config.platform, transport, now)
  return { config, idp, mode: createMode(config, idp, now), transport, clockReadings }
}

/** Checks that the addresses of the endpoints are known. All other checks of the provider need these addresses. */
export async function checkEndpoints({ config, idp, transport }: Provider): Promise<Finding[]> {
  const { issuer } = config.platform
  if (issuer === undefined) return withoutIssuer(config)
  const request: CheckedRequest = {
    check: 'endpoints',
    endpoint: 'The discovery document',
    url: discoveryUrl(issuer),
    setting: 'platform.issuer',
    timeoutSeconds: config.platform.timeoutSeconds
  }
  let metadata: ProviderMetadata
  try {
    metadata = await idp.metadata()
  } catch (error) {
    return [findingOfError(error, request)]
  }
  return [
    ok('endpoints', `The discovery document of ${issuer} contains the endpoints.`),
    ...(await disagreements(config, metadata, transport))
  ]
}

const needed = ['authorizationEndpoint', 'tokenEndpoint', 'userinfoEndpoint'] as const
const keys = [...needed, 'revocationEndpoint', 'endSessionEndpoint'] as const

function withoutIssuer({ platform }: Config): Finding[] {
  const own = needed.filter(key => platform[key] !== undefined)
  const builtIn = needed.filter(key => platform[key] === undefined)
  if (own.length === 0) return [ok('endpoints', 'The endpoints are those of Autodesk Platform Services.')]
  if (builtIn.length === 0) return [ok('endpoints', 'The endpoints come from the settings.')]
  return [
    failed(
      'endpoints',
      `The settings contain ${listed(own)}, but Autodesk Platform Services is still used for ${listed(builtIn)}.`,
      'Set all three addresses for one provider, or set platform.issuer.'
    )
  ]
}

function listed(names: readonly string[]): string {
  return names.map(name => `platform.${name}`).join(', ')
}

/** Warns about each endpoint that has one address in the settings and another address in the discovery document. */
async function disagreements(config: Config, metadata: ProviderMetadata, transport: Transport): Promise<Finding[]> {
  const { platform } = config
  const set = keys.filter(key => platform[key] !== undefined && platform[key] !== 'none')
  const findings = set.map(async key => {
    const discovered = await createMetadata({ ...platform, [key]: undefined }, transport)().then(
      found => found[key],
      // The document does not contain this endpoint, so there is nothing to compare.
      () => undefined
    )
    if (discovered === undefined || discovered === metadata[key]) return []
    const address = new URL(discovered).href.slice(0, 200)
    return [
      warning(
        'endpoints',
        `platform.${key} is ${metadata[key]}, but the discovery document has ${address}.`,
        `Remove platform.${key} from the settings, unless the difference is intended.`
      )
    ]
  })
  return (await Promise.all(findings)).flat()
}

/** Reports the proxy for calls to each origin of the provider, if the environment configures one. */
export async function checkOutbound({ idp }: Provider): Promise<Finding[]> {
  const { tokenEndpoint, userinfoEndpoint, revocationEndpoint } = await idp.metadata()
  const addresses = [tokenEndpoint, userinfoEndpoint, revocationEndpoint].filter(address => address !== undefined)
  const origins = [...new Set(addresses.map(address => new URL(address).origin))]
  const proxies = new Map(origins.map(origin => [origin, outboundProxy(origin)]))
  return origins.flatMap(origin => {
    const proxy = proxies.get(origin)
    if (proxy === undefined) {
      const usesProxy = [...proxies.values()].some(other => other !== undefined)
      return usesProxy ? [ok('proxy', `Calls to ${origin} use no proxy (NO_PROXY).`)] : []
    }
    const shown = withoutUser(proxy)
    if (URL.canParse(proxy) && /^https?:$/.test(new URL(proxy).protocol)) {
      return [ok('proxy', `Calls to ${origin} go through the proxy ${shown} from the environment.`)]
    }
    return [
      failed(
        'proxy',
        `The proxy ${shown} is not an http or https address.`,
        'Set HTTPS_PROXY to an address such as http://host:port.'
      )
    ]
  })
}

/**
 * Sends a made-up code. If the client id and secret are right, the provider rejects the code (`invalid_grant`). Otherwise
 * the provider rejects the client and does not check the code (RFC 6749 section 5.2).
 */
export async function checkClient({ config, idp }: Provider): Promise<Finding> {
  const { tokenEndpoint } = await idp.metadata()
  const request = requestTo(config, 'client', 'tokenEndpoint', tokenEndpoint)
  try {
    const random = () => randomBytes(32).toString('base64url')
    await idp.authorizationCodeGrant({ code: random(), codeVerifier: config.platform.pkce ? random() : undefined })
    return failed(
      'client',
      'The token endpoint gave tokens for a made-up code.',
      'Do not use this provider. Compare its address with its documentation.'
    )
  } catch (error) {
    return findingOfClientError(error, request, credentialsOf(config))
  }
}

/** The credentials of the client, as messages name them, and what to do if the provider rejects them. */
interface CredentialTexts {
  readonly kind: 'secret' | 'key'
  readonly compare: string
  readonly otherwise: string
}

function credentialsOf({ platform }: Config): CredentialTexts {
  const key = platform.clientAuthentication === 'private_key_jwt' ? signingKeyOf(platform) : undefined
  if (!key) {
    return {
      kind: 'secret',
      compare: "Compare platform.clientId and platform.clientSecret with the application's page.",
      otherwise: 'set platform.clientAuthentication to another value'
    }
  }
  const keyId = key.keyId === undefined ? 'no key id' : `the key id ${quote(key.keyId)}`
  return {
    kind: 'key',
    compare: `Compare platform.clientId with the application's page, and register the public key there, with ${keyId} and the algorithm ${key.algorithm}.`,
    otherwise: 'compare platform.issuer with the issuer that the provider expects as the audience of assertions'
  }
}

function findingOfClientError(error: unknown, request: CheckedRequest, credentials: CredentialTexts): Finding {
  // The status 401 means that the client id or secret is wrong (RFC 6749 section 5.2), even if the error code is not
  // invalid_client. Keycloak sends unauthorized_client.
  if (error instanceof OAuthError)
    return error.status === 401 ? wrongCredentials(error, credentials) : findingOfCode(error, credentials)
  if (error instanceof ProviderError && (error.status === 401 || error.status === 403)) {
    return failed(
      'client',
      `The token endpoint rejects this client (${error.status}) and gives no reason.`,
      `${credentials.compare} If they are right, ask the provider if it blocks this machine.`
    )
  }
  return findingOfError(error, request)
}

function wrongCredentials(
  { error, status }: Pick<OAuthError, 'error' | 'status'>,
  { kind, compare, otherwise }: CredentialTexts
): Finding {
  return failed(
    'client',
    `The client id or ${kind} is wrong. The token endpoint rejects the client (${status} ${error}).`,
    `${compare} If they are right, ${otherwise}.`
  )
}

function findingOfCode({ error, status }: OAuthError, credentials: CredentialTexts): Finding {
  switch (error) {
    case 'invalid_grant':
      return ok(
        'client',
        `The client id and ${credentials.kind} work. The token endpoint rejected only the made-up code (invalid_grant).`
      )
    case 'invalid_client':
      return wrongCredentials({ error, status }, credentials)
    case 'unauthorized_client':
    case 'unsupported_grant_type':
      return failed(
        'client',
        `The token endpoint does not let this client exchange codes (${status} ${error}).`,
        'Register the application as a web application that may use the authorization code grant.'
      )
    default:
      return warning(
        'client',
        `The token endpoint rejected a made-up code with an unusual error (${status} ${error}), so the ${credentials.kind} may be wrong.`,
        `Sign in once. If that fails, look for ${error} in the provider's documentation.`
      )
  }
}

/** Sends a made-up token. If the token is rejected, the address is probably that of a user info endpoint. */
export async function checkUserInfo({ config, idp, mode }: Provider): Promise<Finding> {
  const { userinfoEndpoint } = await idp.metadata()
  if (userinfoEndpoint === undefined) return withoutEndpoint(config, mode)
  const request = requestTo(config, 'userinfo', 'userinfoEndpoint', userinfoEndpoint)
  try {
    await idp.userInfo('made-up-by-check', undefined)
    return failed(
      'userinfo',
      'The address accepted a made-up token, so it is not a user info endpoint.',
      checkAddress(request)
    )
  } catch (error) {
    const status = error instanceof OAuthError || error instanceof ProviderError ? error.status : undefined
    if (status === 400 || status === 401 || status === 403) {
      return ok('userinfo', `The user info endpoint rejects a made-up token, as it should (${status}).`)
    }
    return findingOfError(error, request)
  }
}

function withoutEndpoint({ access }: Config, { loginScope }: Mode): Finding {
  if (loginScope.split(' ').includes('openid')) {
    return ok('userinfo', 'There is no user info endpoint, so names come from the ID token.')
  }
  if (access.allow) {
    return failed(
      'userinfo',
      'There is no user info endpoint and no ID token, so access.allow cannot be checked and nobody can sign in.',
      'Add openid and email to the scopes.'
    )
  }
  return warning(
    'userinfo',
    'There is no user info endpoint and no ID token, so /api/auth/profile returns an empty name.',
    'Add openid to the scopes.'
  )
}

const WARNING_SECONDS = 60
// With a larger difference, ID tokens are rejected and replicas disagree about the expiry of a token.
const FAILURE_SECONDS = 300
// The Date header is truncated to whole seconds, which removes half a second on average.
const TRUNCATED_MS = 500

/** Compares the clock of this machine with the provider's. Returns nothing if no response had a Date header. */
export function checkClock(readings: readonly ClockReading[]): Finding[] {
  // Token requests use POST, which caches do not answer. The date of their responses is therefore current.
  const reading = readings.find(({ endpoint }) => endpoint === 'token') ?? readings[0]
  if (!reading) return []
  const { date, sentAt, receivedAt } = reading
  const ahead = Math.round(((sentAt + receivedAt) / 2 - date - TRUNCATED_MS) / 1000)
  const seconds = Math.abs(ahead)
  if (seconds <= 1) return [ok('clock', "This machine's clock agrees with the provider's.")]
  const message = `This machine's clock is ${durationText(seconds)} ${ahead > 0 ? 'ahead of' : 'behind'} the provider's.`
  if (seconds <= WARNING_SECONDS) return [ok('clock', message)]
  const next = 'Let NTP set the clock (timedatectl set-ntp true). For a container, set the clock of its host.'
  return [seconds <= FAILURE_SECONDS ? warning('clock', message, next) : failed('clock', message, next)]
}

function durationText(seconds: number): string {
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}
