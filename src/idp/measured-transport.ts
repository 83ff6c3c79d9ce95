import type { Metrics } from '../metrics/metrics.js'
import { UpstreamError } from './errors.js'
import type { Transport } from './transport.js'

/** Returns a transport that also records the outcome and the duration of every call. */
export function measured(transport: Transport, metrics: Pick<Metrics, 'providerCalled'>): Transport {
  return {
    ...transport,
    async call(request) {
      const started = performance.now()
      const record = (outcome: string) =>
        metrics.providerCalled(request.endpoint, outcome, (performance.now() - started) / 1000)
      try {
        const response = await transport.call(request)
        record(String(response.status))
        return response
      } catch (error) {
        record(error instanceof UpstreamError ? error.problem : 'error')
        throw error
      }
    }
  }
}
