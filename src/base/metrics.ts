/**
 * The events that the server counts. Each value of a label needs memory in Prometheus, so every label has a small set
 * of values. Apart from HTTP statuses, no value is taken from a request or a response.
 */
export interface Metrics {
  loginStarted(): void
  /**
   * Called when the callback has completed a login or has failed.
   * @param outcome `succeeded`, `repeated` if an earlier request had completed the login, `restarted`, or a `FailureReason`
   */
  callbackEnded(outcome: string): void
  /**
   * Called once for each refresh of a session, however many requests waited for it. If the store cannot be read, no refresh
   * begins, so this function is then called for each request that needs one.
   * @param outcome `succeeded`, `partial`, `rejected` or `failed`, as in the log
   */
  refreshEnded(outcome: string): void
  /**
   * Called with the waiting time of each request that got a refreshed session without sending a token request itself.
   */
  refreshWaited(seconds: number): void
  /** Called for each logout by a browser (`everywhere` if it ends all sessions of its user) or by the provider. */
  loggedOut(by: 'browser' | 'everywhere' | 'provider'): void
  /** Called when the refresh token of a logout was revoked or not. */
  revocationEnded(outcome: 'succeeded' | 'failed' | 'unavailable'): void
  /** Called for each request that this server sends to the identity provider. */
  providerResponded(endpoint: string, response: ResponseLabels, seconds: number): void
  /** Called for each request with a session cookie. */
  sessionCookieRead(outcome: 'valid' | 'expired' | 'unreadable'): void
  /** Called for each request whose session cookie is encrypted with one of `session.previousSecrets`. */
  previousSecretUsed(): void
  /** @param bytes the total size of the session cookies */
  sessionCookieWritten(bytes: number): void
  /** Called for each response of the forward-auth listener. */
  forwardAuthEnded(status: number): void
  /** @param route the path of a route of this server, the path pattern of a proxy rule, or a group of routes */
  requestEnded(route: string, status: number, seconds: number): void
  /**
   * Called when the headers of a response have arrived from an upstream of the API proxy, or when the request fails
   * without them.
   * @param route the path pattern of the proxy rule
   */
  upstreamResponded(route: string, response: ResponseLabels, seconds: number): void
  /** Called when an upstream of the API proxy does not complete a response. */
  upstreamResponseIncomplete(route: string): void
  /** @param error undefined if the command succeeded */
  redisResponded(command: string, error: string | undefined, seconds: number): void
  /** Registers the function that returns the number of waiting requests of a queue. */
  watchQueue(queue: string, length: () => number): void
  /** Registers the function that returns a value. If the value is undefined, the metric is absent. */
  watch(gauge: GaugeName, value: () => number | undefined): void
}

/** The values that are read each time Prometheus reads the metrics. */
export type GaugeName =
  | 'redis_up'
  | 'cached_sessions'
  | 'requests_in_flight'
  | 'provider_pause_seconds'
  | 'client_rejections'
  | 'config_last_reload_successful'
  | 'config_last_reload_success_timestamp_seconds'

/** The result of a request of this server. */
export interface ResponseLabels {
  /** The status of the response. Undefined if there was none. */
  readonly code?: number
  /** The reason why the request failed. A status such as 500 needs no reason. */
  readonly error?: string
}

/** Ignores all events. Used when metrics are disabled. */
export const noMetrics: Metrics = {
  loginStarted() {},
  callbackEnded() {},
  refreshEnded() {},
  refreshWaited() {},
  loggedOut() {},
  revocationEnded() {},
  providerResponded() {},
  sessionCookieRead() {},
  previousSecretUsed() {},
  sessionCookieWritten() {},
  forwardAuthEnded() {},
  requestEnded() {},
  upstreamResponded() {},
  upstreamResponseIncomplete() {},
  redisResponded() {},
  watchQueue() {},
  watch() {}
}
