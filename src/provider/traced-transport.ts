import { inSpan, type Tracing } from '../telemetry/tracing.js'
import type { Transport } from './transport.js'

/**
 * Returns a transport with a span for every call. The query of the address and the form are not recorded, because they may
 * contain secrets. The trace is not continued at the provider, which often belongs to another organisation.
 */
export function traced(transport: Transport, tracing: Tracing): Transport {
  return {
    ...transport,
    call(request) {
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
  }
}
