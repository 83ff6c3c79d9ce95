/** Collects the metrics for Prometheus. The server loads this file only if the setting `metrics.address` has a value. */
import http from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { closeServer, listen } from './listener.js'
import type { GaugeName, Metrics } from './metrics.js'

const PREFIX = 'platform_auth_'
const PROVIDER_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const REQUEST_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15]
const REDIS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1]
const COOKIE_BYTES = [1000, 2000, 3000, 4000, 8000, 12_000, 16_000]

const GAUGES: Readonly<Record<GaugeName, string>> = {
  redis_up: '1 if Redis can be used, otherwise 0. Absent without Redis.',
  cached_sessions: 'Sessions of which this process has a revision or a record in its memory.',
  requests_in_flight: 'Requests whose responses have not ended.',
  provider_pause_seconds: 'Remaining time for which the provider asked to send no token requests.',
  client_rejections:
    'Users, at most 100, for whom the provider rejected this client since the last token request that succeeded.',
  config_last_reload_successful: '1 if the last reload of the secrets has succeeded, or there was none, otherwise 0.',
  config_last_reload_success_timestamp_seconds: 'Time of the last successful reload of the secrets, or of the start.'
}

export interface PrometheusMetrics extends Metrics {
  /** Returns the metrics in the text exposition format. */
  text(): Promise<string>
  /**
   * Serves `/metrics` on a separate port, so that the public port does not expose the metrics. If the port cannot
   * be opened, rejects with Node's error, which then has the property `listener: 'metrics'`, so that the caller can
   * name the setting.
   * @example const scrapes = await metrics.listen({ port: 9464, host: '127.0.0.1' })
   */
  listen(address: Address): Promise<{ readonly port: number; close(): Promise<void> }>
}

interface Address {
  readonly port: number
  readonly host: string | undefined
}

/** @param version the version of this program, for the metric `build_info` */
export function createPrometheusMetrics(version: string): PrometheusMetrics {
  const registry = new Registry()
  const create = createInstruments(registry)
  collectDefaultMetrics({ register: registry })
  const instruments = requestInstruments(create)
  const queues = new Map<string, () => number>()
  create.gauge(
    'queued_requests',
    'Requests to the provider or to upstreams that wait for their turn.',
    ['queue'],
    queued => {
      for (const [queue, length] of queues) queued.set({ queue }, length())
    }
  )
  create
    .gauge('build_info', 'The versions of this program and of Node, as labels. The value is always 1.', [
      'version',
      'node_version'
    ])
    .set({ version, node_version: process.versions.node }, 1)

  return {
    loginStarted: () => instruments.logins.inc(),
    callbackEnded: outcome => instruments.callbacks.inc({ outcome }),
    refreshEnded: outcome => instruments.refreshes.inc({ outcome }),
    refreshWaited: seconds => instruments.refreshWaits.observe(seconds),
    loggedOut: by => instruments.logouts.inc({ by }),
    revocationEnded: outcome => instruments.revocations.inc({ outcome }),
    providerResponded: (endpoint, { code, error }, seconds) =>
      instruments.provider.observe({ endpoint, ...(code && { code }), ...(error && { error }) }, seconds),
    sessionCookieRead: outcome => instruments.cookies.inc({ outcome }),
    previousSecretUsed: () => instruments.previousSecrets.inc(),
    sessionCookieWritten: bytes => instruments.cookieBytes.observe(bytes),
    forwardAuthEnded: code => instruments.forwardAuth.inc({ code }),
    requestEnded: (route, code, seconds) => instruments.requests.observe({ route, code }, seconds),
    upstreamResponded: (route, { code, error }, seconds) =>
      instruments.upstreams.observe({ route, ...(code && { code }), ...(error && { error }) }, seconds),
    upstreamResponseIncomplete: route => instruments.incompleteResponses.inc({ route }),
    redisResponded: (command, error, seconds) =>
      instruments.redis.observe({ command, ...(error && { error }) }, seconds),
    watchQueue: (queue, length) => void queues.set(queue, length),
    watch(name, value) {
      create.gauge(name, GAUGES[name], [], watched => {
        const current = value()
        watched.remove({})
        if (current !== undefined) watched.set(current)
      })
    },
    text: () => registry.metrics(),
    listen: address => listenForScrapes(registry, address)
  }
}

type Create = ReturnType<typeof createInstruments>

/** Returns the functions that create instruments in the registry. */
function createInstruments(registry: Registry) {
  const registers = [registry]
  return {
    counter: (name: string, help: string, labelNames: string[] = []) =>
      new Counter({ name: PREFIX + name, help, labelNames, registers }),
    gauge: (name: string, help: string, labelNames: string[], collect?: (gauge: Gauge) => void) =>
      new Gauge({
        name: PREFIX + name,
        help,
        labelNames,
        registers,
        ...(collect && {
          collect() {
            collect(this)
          }
        })
      }),
    histogram: (name: string, help: string, buckets: number[], labelNames: string[] = []) =>
      new Histogram({ name: PREFIX + name, help, buckets, labelNames, registers })
  }
}

/** Creates the counters and histograms of what happens to requests and sessions. */
function requestInstruments({ counter, histogram }: Create) {
  return {
    logins: counter('logins_started_total', 'Logins for which a browser was redirected to the identity provider.'),
    callbacks: counter('callbacks_total', 'Callbacks by outcome.', ['outcome']),
    refreshes: counter('refreshes_total', 'Refreshes of sessions by outcome.', ['outcome']),
    refreshWaits: histogram(
      'refresh_wait_seconds',
      'Time that a request waited for a refresh by another request or replica.',
      PROVIDER_SECONDS
    ),
    logouts: counter('logouts_total', 'Logouts by who asked for them.', ['by']),
    revocations: counter('revocations_total', 'Revocations of refresh tokens after logouts, by outcome.', ['outcome']),
    cookies: counter('session_cookies_total', 'Requests with a session cookie, by outcome.', ['outcome']),
    previousSecrets: counter(
      'session_cookies_with_previous_secret_total',
      'Requests whose session cookie is encrypted with one of session.previousSecrets.'
    ),
    cookieBytes: histogram(
      'session_cookie_bytes',
      'Total size in bytes of the session cookies, each time they are set.',
      COOKIE_BYTES
    ),
    forwardAuth: counter('forward_auth_requests_total', 'Forward-auth requests by the status of the response.', [
      'code'
    ]),
    provider: histogram(
      'provider_request_duration_seconds',
      'Duration of requests to the identity provider.',
      PROVIDER_SECONDS,
      ['endpoint', 'code', 'error']
    ),
    requests: histogram('http_request_duration_seconds', 'Duration of requests by route and status.', REQUEST_SECONDS, [
      'route',
      'code'
    ]),
    upstreams: histogram(
      'upstream_header_duration_seconds',
      'Duration of proxied requests until the response headers.',
      PROVIDER_SECONDS,
      ['route', 'code', 'error']
    ),
    incompleteResponses: counter(
      'upstream_responses_incomplete_total',
      'Proxied responses that the upstream did not complete.',
      ['route']
    ),
    redis: histogram('redis_command_duration_seconds', 'Duration of commands to Redis.', REDIS_SECONDS, [
      'command',
      'error'
    ])
  }
}

async function listenForScrapes(registry: Registry, { port, host }: Address) {
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
