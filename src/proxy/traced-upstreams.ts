import type { Tracing } from '../telemetry/tracing.js'
import type { Upstreams } from './upstream.js'

/**
 * Returns upstreams with a span for each request, which ends with the response. The span continues the trace at the
 * upstream: the client's own trace headers are replaced. The path and the query are not recorded, because the span of the
 * request to this server has the path already.
 */
export function tracedUpstreams(upstreams: Upstreams, tracing: Tracing): Upstreams {
  return {
    ...upstreams,
    send(request, receiver) {
      const { origin, method, headers } = request
      const { hostname } = new URL(origin)
      const attributes = { 'http.request.method': method, 'server.address': hostname, 'url.full': `${origin}/` }
      const span = tracing.start(`upstream ${method}`, 'client', attributes)
      let failure: string | undefined
      const exchange = upstreams.send(
        { ...request, headers: continued(headers, span.headers) },
        {
          ...receiver,
          answered(statusCode, rawHeaders) {
            span.set({ 'http.response.status_code': statusCode })
            if (statusCode >= 400) failure = String(statusCode)
            receiver.answered(statusCode, rawHeaders)
          },
          ended() {
            span.end(failure)
            receiver.ended()
          },
          failed(error) {
            span.end(error.kind)
            receiver.failed(error)
          }
        }
      )
      return {
        ...exchange,
        abort() {
          span.end(failure ?? 'aborted')
          exchange.abort()
        }
      }
    }
  }
}

const CLIENTS_OWN = new Set(['traceparent', 'tracestate'])

function continued(headers: readonly string[], added: Readonly<Record<string, string>>): string[] {
  const kept = headers.filter((_, index) => !CLIENTS_OWN.has(headers[index - (index % 2)] as string))
  return [...kept, ...Object.entries(added).flat()]
}
