import type { Metrics } from '../metrics/metrics.js'
import { UpstreamError } from './errors.js'
import type { Transport } from './transport.js'

/** The same transport, every call of it counted and timed. */
export function measured(transport: Transport, metrics: Pick<Metrics, 'providerCalled'>): Transport {
  return {
    ...transport,
    async call(request) {
      const started = performance.now()
      const done = (outcome: string) =>
        metrics.providerCalled(request.endpoint, outcome, (performance.now() - started) / 1000)
      try {
        const response = await transport.call(request)
        done(String(response.status))
        return response
      } catch (error) {
        done(error instanceof UpstreamError ? error.problem : 'error')
        throw error
      }
    }
  }
}
