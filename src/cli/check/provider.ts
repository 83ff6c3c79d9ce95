import type { Config } from '../../config/settings.js'
import { createMode } from '../../modes/index.js'
import type { Mode } from '../../modes/mode.js'
import { createIdentityProvider, type IdentityProvider } from '../../provider/client.js'
import type { Endpoint } from '../../provider/errors.js'
import { createTransport, type Transport } from '../../provider/transport.js'

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
  const idp = createIdentityProvider(config.platform, transport)
  return { config, idp, mode: createMode(config, idp, now), transport, clockReadings }
}
