/** Collects the metrics for Prometheus. The server loads this file only if the setting `metrics.address` has a value. */
import http from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { closeServer, listen } from './listener.js'
import type { Metrics } from './metrics.js'

const PREFIX = 'platform_auth_'
const PROVIDER_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const REQUEST_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15]
const COOKIE_BYTES = [1000, 2000, 3000, 4000, 8000, 12_000, 16_000]

/** @param version the version of this program, for the metric `build_info` */
export function createPrometheusMetrics(version: string) {
  const registers = [new Registry()]
  const registry = registers[0] as Registry
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name: PREFIX + name, help, labelNames, registers })
  const histogram = (name: string, help: string, buckets: number[], labelNames: string[] = []) =>
    new Histogram({ name: PREFIX + name, help, buckets, labelNames, registers })

  collectDefaultMetrics({ register: registry })
  const logins = counter('logins_started_total', 'Logins for which a browser was redirected to the identity provider.')
  const callbacks = counter('callbacks_total', 'Callbacks by outcome.', ['outcome'])
  const refreshes = counter(
    'refreshes_total',
    'Requests that needed a refresh, by outcome. Several requests can share one refresh at the provider.',
    ['outcome']
  )
  const refreshWaits = histogram(
    'refresh_wait_seconds',
    'Time that a request waited for a refresh by another request or replica.',
    PROVIDER_SECONDS
  )
  const sessions = counter('sessions_read_total', 'Requests with a session cookie, by outcome.', ['outcome'])
  const cookieBytes = histogram(
    'session_cookie_bytes',
    'Total size in bytes of the session cookies, each time they are set.',
    COOKIE_BYTES
  )
  const forwardAuth = counter('forward_auth_total', 'Forward-auth requests by the status of the response.', ['status'])
  const provider = histogram('provider_call_seconds', 'Duration of calls to the identity provider.', PROVIDER_SECONDS, [
    'endpoint',
    'outcome'
  ])
  const requests = histogram('request_seconds', 'Duration of requests by route and status.', REQUEST_SECONDS, [
    'route',
    'status'
  ])
  const upstreams = histogram(
    'proxy_upstream_seconds',
    'Duration of proxied requests until the response headers, by rule and outcome.',
    PROVIDER_SECONDS,
    ['rule', 'outcome']
  )
  const brokenResponses = counter(
    'proxy_responses_broken_total',
    'Proxied responses that the upstream did not complete.',
    ['rule']
  )
  new Gauge({
    name: `${PREFIX}coordination_store`,
    help: 'The store that coordinates refreshes, as a label. The value is always 1.',
    labelNames: ['store'],
    registers,
    collect() {
      this.reset()
      this.set({ store: store.storeStatus() }, 1)
    }
  })

  new Gauge({
    name: `${PREFIX}remembered_sessions`,
    help: 'Sessions for which this process remembers a revision or a record.',
    registers,
    collect() {
      this.set(store.rememberedSessions())
    }
  })

  new Gauge({
    name: `${PREFIX}build_info`,
    help: 'The versions of this program and of Node, as labels. The value is always 1.',
    labelNames: ['version', 'node_version'],
    registers
  }).set({ version, node_version: process.versions.node }, 1)

  let store = { storeStatus: () => 'unknown', rememberedSessions: () => 0 }

  const metrics: Metrics = {
    loginStarted: () => logins.inc(),
    callbackEnded: outcome => callbacks.inc({ outcome }),
    refreshEnded: outcome => refreshes.inc({ outcome }),
    refreshWaited: seconds => refreshWaits.observe(seconds),
    providerCalled: (endpoint, outcome, seconds) => provider.observe({ endpoint, outcome }, seconds),
    sessionRead: outcome => sessions.inc({ outcome }),
    sessionWritten: bytes => cookieBytes.observe(bytes),
    forwardAuthEnded: status => forwardAuth.inc({ status }),
    requestEnded: (route, status, seconds) => requests.observe({ route, status }, seconds),
    upstreamResponded: (rule, outcome, seconds) => upstreams.observe({ rule, outcome }, seconds),
    proxiedResponseBroken: rule => brokenResponses.inc({ rule })
  }
  return {
    ...metrics,
    /** Sets the store whose state is read each time Prometheus reads the metrics. */
    watchStore(current: typeof store): void {
      store = current
    },
    /** Returns the metrics in the text exposition format. */
    text: () => registry.metrics(),
    /**
     * Serves `/metrics` on a separate port, so that the public port does not expose the metrics. If the port cannot
     * be opened, rejects with Node's error, which then has the property `listener: 'metrics'`, so that the caller can
     * name the setting.
     * @example const scrapes = await metrics.listen({ port: 9464, host: '127.0.0.1' })
     */
    async listen({ port, host }: { readonly port: number; readonly host: string | undefined }) {
      const server = http.createServer(async (request, response) => {
        response.setHeader('X-Content-Type-Options', 'nosniff')
        // Prometheus adds the `params` of its configuration as a query.
        const [path] = request.url?.split('?', 1) ?? []
        if (!['GET', 'HEAD'].includes(request.method ?? '') || path !== '/metrics') {
          response.writeHead(404).end()
          return
        }
        response.writeHead(200, { 'Content-Type': registry.contentType, 'Cache-Control': 'no-store' })
        // Node sends no body for HEAD.
        response.end(await registry.metrics())
      })
      return {
        port: await listen(server, { port, host, listener: 'metrics' }),
        close: () => closeServer(server)
      }
    }
  }
}
