/**
 * What the server counts. docs/reference/logs-and-traces.md describes the labels. Each value of a label needs memory in Prometheus,
 * so every label has a small set of values. Apart from HTTP statuses, no value is taken from a request or a response.
 */

const PROVIDER_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const REQUEST_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 15]
const REDIS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1]
const COOKIE_BYTES = [1000, 2000, 3000, 4000, 8000, 12_000, 16_000]

/** The counters: what they count, and their labels. */
export const COUNTERS = {
  logins_started_total: ['Logins for which a browser was redirected to the identity provider.', []],
  callbacks_total: ['Callbacks by outcome.', ['outcome']],
  // Each refresh counts once, however many requests waited for it. If the store cannot be read, no refresh begins, and each request
  // that needs one counts.
  refreshes_total: ['Refreshes of sessions by outcome.', ['outcome']],
  logouts_total: ['Logouts by who asked for them.', ['by']],
  revocations_total: ['Revocations of refresh tokens after logouts, by outcome.', ['outcome']],
  session_cookies_total: ['Requests with a session cookie, by outcome.', ['outcome']],
  session_cookies_with_previous_secret_total: [
    'Requests whose session cookie is encrypted with one of session.previousSecrets.',
    []
  ],
  forward_auth_requests_total: ['Forward-auth requests by the status of the response.', ['code']],
  upstream_responses_incomplete_total: ['Proxied responses that the upstream did not complete.', ['route']]
} as const

/** The histograms: what they measure, their labels, and the upper limits of their buckets. */
export const HISTOGRAMS = {
  refresh_wait_seconds: [
    'Time that a request waited for a refresh by another request or replica.',
    [],
    PROVIDER_SECONDS
  ],
  session_cookie_bytes: ['Total size in bytes of the session cookies, each time they are set.', [], COOKIE_BYTES],
  provider_request_duration_seconds: [
    'Duration of requests to the identity provider.',
    ['endpoint', 'code', 'error'],
    PROVIDER_SECONDS
  ],
  http_request_duration_seconds: ['Duration of requests by route and status.', ['route', 'code'], REQUEST_SECONDS],
  upstream_header_duration_seconds: [
    'Duration of proxied requests until the response headers.',
    ['route', 'code', 'error'],
    PROVIDER_SECONDS
  ],
  redis_command_duration_seconds: ['Duration of commands to Redis.', ['command', 'error'], REDIS_SECONDS]
} as const

/** The gauges, which are read each time Prometheus reads the metrics: what they show, and their labels. */
export const GAUGES = {
  redis_up: ['1 if Redis can be used, otherwise 0. Absent without Redis.', []],
  cached_sessions: ['Sessions of which this process has a revision or a record in its memory.', []],
  requests_in_flight: ['Requests whose responses have not ended.', []],
  queued_requests: ['Requests to the provider or to upstreams that wait for their turn.', ['queue']],
  provider_pause_seconds: ['Remaining time for which the provider asked to send no token requests.', []],
  client_rejections: [
    'Users, at most 100, for whom the provider rejected this client since the last token request that succeeded.',
    []
  ],
  config_last_reload_successful: [
    '1 if the last reload of the secrets has succeeded, or there was none, otherwise 0.',
    []
  ],
  config_last_reload_success_timestamp_seconds: [
    'Time of the last successful reload of the secrets, or of the start.',
    []
  ],
  build_info: [
    'The versions of this program and of Node, as labels. The value is always 1.',
    ['version', 'node_version']
  ]
} as const

/** The values of the labels of a metric. A label that is undefined is left out. */
type Labels<Row> = Row extends readonly [string, readonly (infer Name extends string)[], ...unknown[]]
  ? Readonly<Partial<Record<Name, string | number | undefined>>>
  : never

export interface Metrics {
  /** Adds 1 to a counter. */
  count<Name extends keyof typeof COUNTERS>(name: Name, labels?: Labels<(typeof COUNTERS)[Name]>): void
  /** Adds a value to a histogram. */
  observe<Name extends keyof typeof HISTOGRAMS>(
    name: Name,
    value: number,
    labels?: Labels<(typeof HISTOGRAMS)[Name]>
  ): void
  /** Registers the function that returns the value of a gauge. If the value is undefined, it is absent. */
  watch<Name extends keyof typeof GAUGES>(
    name: Name,
    value: () => number | undefined,
    labels?: Labels<(typeof GAUGES)[Name]>
  ): void
}

/** The result of a request of this server, as labels. */
export interface ResponseLabels {
  /** The status of the response. Undefined if there was none. */
  readonly code?: number
  /** The reason why the request failed. A status such as 500 needs no reason. */
  readonly error?: string
}

/** Ignores everything. Used when metrics are off. */
export const noMetrics: Metrics = { count() {}, observe() {}, watch() {} }
