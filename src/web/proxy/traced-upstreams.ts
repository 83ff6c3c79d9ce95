import type { Tracing } from '../../base/tracing.js'
import { withoutNames } from './request-headers.js'
import type { Upstreams } from './upstream.js'

/**
 * Returns upstreams that create a span for each request. The span ends with the response. The trace headers of the span
 * replace those of the client, so the upstream continues the trace. The path is not recorded, because the span of the
 * request to this server already contains it. The query is not recorded, because it may contain secrets.
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
      const continued = [...withoutNames(headers, TRACE_HEADERS), ...Object.entries(span.headers).flat()]
      const exchange = upstreams.send(
        { ...request, headers: continued },
        {
          ...receiver,
          responded(statusCode, rawHeaders) {
            span.set({ 'http.response.status_code': statusCode })
            if (statusCode >= 400) failure = String(statusCode)
            receiver.responded(statusCode, rawHeaders)
          },
          ended() {
            span.end(failure)
            receiver.ended()
          },
          failed(error) {
            span.end(error.reason)
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

const TRACE_HEADERS: ReadonlySet<string> = new Set(['traceparent', 'tracestate'])
