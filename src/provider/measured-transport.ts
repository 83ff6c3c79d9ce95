import type { Metrics } from '../metrics/metrics.js'
import { type Endpoint, ProviderError } from './errors.js'
import type { Transport } from './transport.js'

/**
 * Returns a transport that also records the outcome and the duration of every call. A token request that gets no place in
 * its queue counts as a call, too.
 */
export function measured(transport: Transport, metrics: Pick<Metrics, 'providerCalled'>): Transport {
  /** @param outcomeOf returns the outcome to record, or undefined if the call itself is still to come */
  async function measure<T>(endpoint: Endpoint, work: Promise<T>, outcomeOf: (result: T) => string | undefined) {
    const started = performance.now()
    const record = (outcome: string) => metrics.providerCalled(endpoint, outcome, (performance.now() - started) / 1000)
    try {
      const result = await work
      const outcome = outcomeOf(result)
      if (outcome !== undefined) record(outcome)
      return result
    } catch (error) {
      record(error instanceof ProviderError ? error.problem : 'error')
      throw error
    }
  }

  return {
    ...transport,
    enterQueue: (name, endpoint, options) =>
      measure(endpoint, transport.enterQueue(name, endpoint, options), () => undefined),
    call: request => measure(request.endpoint, transport.call(request), ({ status }) => String(status))
  }
}
