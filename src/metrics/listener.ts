import http from 'node:http'
import { closeServer, listen } from '../support/listener.js'
import type { PrometheusMetrics } from './prometheus.js'

/**
 * Serves `GET /metrics` on a separate port, so that the public port does not expose the metrics. If the port cannot be
 * opened, rejects with the error of Node and adds the property `listener: 'metrics'`, which tells this port from the
 * public one.
 * @example const scrapes = await listenForScrapes(metrics, { port: 9464, host: '127.0.0.1' })
 */
export async function listenForScrapes(
  metrics: PrometheusMetrics,
  { port, host }: { readonly port: number; readonly host: string }
) {
  const server = http.createServer(async (request, response) => {
    response.setHeader('X-Content-Type-Options', 'nosniff')
    if (request.method !== 'GET' || request.url !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    response.writeHead(200, { 'Content-Type': metrics.contentType, 'Cache-Control': 'no-store' })
    response.end(await metrics.text())
  })
  return {
    port: await listen(server, { port, host, listener: 'metrics' }),
    close: () => closeServer(server)
  }
}
