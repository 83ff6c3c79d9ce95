import type { Metrics } from '../metrics/metrics.js'
import { inSpan, type Tracing } from '../telemetry/tracing.js'
import { type Endpoint, ProviderError } from './errors.js'
import type { Transport, TransportRequest, TransportResponse } from './transport.js'

/**
 * Returns a transport that also records the outcome and the duration of every call, and creates a span for it if tracing
 * is on. A token request that gets no place in its queue counts as a call, too.
 */
export function observed(
  transport: Transport,
  metrics: Pick<Metrics, 'providerCalled'>,
  tracing?: Tracing | undefined
): Transport {
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

  const call = (request: TransportRequest) =>
    tracing ? callInSpan(transport, tracing, request) : transport.call(request)

  return {
    ...transport,
    enterQueue: (name, endpoint, options) =>
      measure(endpoint, transport.enterQueue(name, endpoint, options), () => undefined),
    call: request => measure(request.endpoint, call(request), ({ status }) => String(status))
  }
}

// The query of the address and the form are not recorded, because they may contain secrets. The trace is not continued at
// the provider, which often belongs to another organisation.
function callInSpan(transport: Transport, tracing: Tracing, request: TransportRequest): Promise<TransportResponse> {
  const { endpoint, url, form } = request
  const address = URL.canParse(url) ? new URL(url) : undefined
  const attributes = {
    'http.request.method': form ? 'POST' : 'GET',
    'server.address': address?.hostname,
    'url.full': address && `${address.origin}${address.pathname}`,
    'platform_auth.endpoint': endpoint
  }
  return inSpan(tracing, `provider ${endpoint}`, attributes, async span => {
    const response = await transport.call(request)
    span.set({ 'http.response.status_code': response.status })
    if (response.status >= 400) span.end(String(response.status))
    return response
  })
}
