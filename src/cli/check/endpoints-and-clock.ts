import { outboundProxy } from '../../config/outbound-proxy.js'
import type { Config } from '../../config/settings.js'
import { maskUrl } from '../../config/types/urls.js'
import { createMode, type Mode } from '../../login/mode.js'
import { createIdentityProvider, type IdentityProvider } from '../../provider/client.js'
import { createMetadata, discoveryUrl, type ProviderMetadata } from '../../provider/metadata.js'
import { type Endpoint, ProviderError } from '../../provider/provider-error.js'
import { createTransport, type Transport } from '../../provider/transport.js'
import { findingOfError } from './endpoint-errors.js'
import { type Finding, failed, ok, warning } from './findings.js'
import { problemOfProxy } from './network-errors.js'

/**
 * The client for requests to the identity provider, configured as in the server. All requests of the checks share one
 * time limit.
 */
export interface Provider {
  readonly config: Config
  readonly idp: IdentityProvider
  /** Returns the metadata of the discovery document, or of the settings if they have all that a login needs. */
  readonly metadata: () => Promise<ProviderMetadata>
  readonly mode: Mode
  readonly transport: Transport
  /** The dates of the provider's responses, in the order of their arrival. */
  readonly clockReadings: readonly ClockReading[]
}

/** The provider's time in one response, and this machine's time before the request and after the response. */
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
  const metadata = () => idp.metadata().catch((error: unknown) => fromSettings(error, config, transport))
  return { config, idp, metadata, mode: createMode(config, idp, now), transport, clockReadings }
}

const requiredEndpoints = ['authorizationEndpoint', 'tokenEndpoint', 'userinfoEndpoint'] as const

/** Azure AD B2C has no discovery document below its issuer. The server then works with the endpoints of the settings. */
function fromSettings(error: unknown, { platform }: Config, transport: Transport): Promise<ProviderMetadata> {
  const isAbsent = error instanceof ProviderError && error.isRejection
  if (!isAbsent || requiredEndpoints.some(key => platform[key] === undefined)) throw error
  const { revocationEndpoint = 'none', endSessionEndpoint = 'none' } = platform
  const settings = { ...platform, issuer: undefined, revocationEndpoint, endSessionEndpoint }
  return createMetadata(settings, transport)()
}

/** Checks that the URLs of the endpoints are known. All other checks of the provider need these URLs. */
export async function checkEndpoints({ config, metadata }: Provider): Promise<Finding[]> {
  const { issuer, timeoutSeconds } = config.platform
  if (issuer === undefined) return [withoutIssuer(config)]
  const url = discoveryUrl(issuer)
  try {
    const found = await metadata()
    if (found.issuer === undefined)
      return [ok`There is no document at ${url}, so the endpoints come from the settings.`]
    return [ok`The discovery document of ${issuer} contains the endpoints.`, ...found.unusable.map(unusableEndpoint)]
  } catch (error) {
    return [findingOfError(error, { name: 'The discovery document', url, setting: 'platform.issuer', timeoutSeconds })]
  }
}

function withoutIssuer({ platform }: Config): Finding {
  const listed = (names: readonly string[]) => names.map(name => `platform.${name}`).join(', ')
  const custom = requiredEndpoints.filter(key => platform[key] !== undefined)
  const builtIn = requiredEndpoints.filter(key => platform[key] === undefined)
  if (custom.length === 0) return ok`The endpoints are those of Autodesk Platform Services.`
  if (builtIn.length === 0) return ok`The endpoints come from the settings.`
  return failed`The settings contain ${listed(custom)}, but Autodesk Platform Services is still used for ${listed(builtIn)}. Next: Set all three endpoints for one provider, or set platform.issuer.`
}

/** Warns about an endpoint of the discovery document that is off, because the document has no usable URL for it. */
function unusableEndpoint(problem: string): Finding {
  const text = `An endpoint of the discovery document is off: ${problem}. Next:`
  const [name] = /(userinfo|revocation|end_session)_endpoint/.exec(problem) ?? []
  const key = name?.replace(/_(.)/g, (_, letter) => letter.toUpperCase())
  if (key !== undefined) return warning`${text} Set platform.${key} to the right URL, or to none.`
  return warning`${text} Ask the provider to correct it. Back-channel logout does not work without it.`
}

/** Reports the proxy for calls to each origin of the provider, if the environment configures one. */
export function* checkOutbound(_provider: Provider, metadata: ProviderMetadata): Generator<Finding> {
  const { tokenEndpoint, userinfoEndpoint, revocationEndpoint } = metadata
  const urls = [tokenEndpoint, userinfoEndpoint, revocationEndpoint].filter(url => url !== undefined)
  const origins = [...new Set(urls.map(url => new URL(url).origin))]
  if (origins.every(origin => outboundProxy(origin) === undefined)) return
  for (const origin of origins) {
    const proxy = outboundProxy(origin)
    const problem = proxy && problemOfProxy(proxy)
    if (proxy === undefined) yield ok`Calls to ${origin} use no proxy (NO_PROXY).`
    else if (problem !== undefined) yield failed`${problem}`
    else yield ok`Calls to ${origin} go through the proxy ${maskUrl(proxy)} from the environment.`
  }
}

const WARNING_SECONDS = 60
// With a larger difference, ID tokens are rejected and replicas disagree about the expiry of a token.
const FAILURE_SECONDS = 300
// The Date header is truncated to whole seconds, which removes half a second on average.
const TRUNCATED_MS = 500

/** Compares the clock of this machine with the provider's. Returns nothing if no response had a Date header. */
export function* checkClock(readings: readonly ClockReading[]): Generator<Finding> {
  // Caches do not store responses to POST requests, so the date of a response to a token request is current.
  const reading = readings.find(({ endpoint }) => endpoint === 'token') ?? readings[0]
  if (!reading) return
  const { date, sentAt, receivedAt } = reading
  const ahead = Math.round(((sentAt + receivedAt) / 2 - date - TRUNCATED_MS) / 1000)
  const seconds = Math.abs(ahead)
  const duration = seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
  const seen = `This machine's clock is ${duration} ${ahead > 0 ? 'ahead of' : 'behind'} the provider's.`
  const finding = seconds <= FAILURE_SECONDS ? warning : failed
  if (seconds <= 1) yield ok`This machine's clock agrees with the provider's.`
  else if (seconds <= WARNING_SECONDS) yield ok`${seen}`
  else
    yield finding`${seen} Next: Let NTP set the clock (timedatectl set-ntp true). For a container, set the clock of its host.`
}
