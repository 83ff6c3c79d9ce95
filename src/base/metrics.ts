/**
 * The events that the server counts. Each value of a label needs memory in Prometheus, so every label has a small set
 * of values. Apart from HTTP statuses, no value is taken from a request or a response.
 */
export interface Metrics {
  loginStarted(): void
  /**
   * Called when the callback has completed a login or has failed.
   * @param outcome `succeeded`, `repeated` if an earlier request had completed the login, or a `FailureReason`
   */
  callbackEnded(outcome: string): void
  /**
   * Called for each request that needed a refresh of its session.
   * @param outcome `refreshed`, `coalesced`, `kept`, `partial`, `rejected` or `failed`, as in the log
   */
  refreshEnded(outcome: string): void
  /**
   * Called with the waiting time of each request that got a refreshed session without sending a token request itself.
   */
  refreshWaited(seconds: number): void
  /**
   * Called for each request that this server sends to the identity provider.
   * @param outcome the status of the response, such as `200`; `client_rejected` if the response says that the client of this
   *   server is wrong, whatever its status; or a problem, such as `timeout` or `unreachable`
   */
  providerCalled(endpoint: string, outcome: string, seconds: number): void
  /** Called for each request with a session cookie. */
  sessionRead(outcome: 'opened' | 'unreadable' | 'expired'): void
  /** @param bytes the total size of the session cookies */
  sessionWritten(bytes: number): void
  /** Called for each response of the forward-auth listener. */
  forwardAuthEnded(status: number): void
  requestEnded(route: string, status: number, seconds: number): void
  /**
   * Called when the headers of a response have arrived from an upstream of the API proxy, or when the request fails
   * without them.
   * @param rule the position of the rule in `apiProxy.rules`
   * @param outcome the status of the response, or `timeout`, `unreachable`, `invalid_response`, `queue_full` or `aborted`
   */
  upstreamResponded(rule: number, outcome: string, seconds: number): void
  /** Called when an upstream of the API proxy does not complete a response. */
  proxiedResponseBroken(rule: number): void
}

/** Ignores all events. Used when metrics are disabled. */
export const noMetrics: Metrics = {
  loginStarted() {},
  callbackEnded() {},
  refreshEnded() {},
  refreshWaited() {},
  providerCalled() {},
  sessionRead() {},
  sessionWritten() {},
  forwardAuthEnded() {},
  requestEnded() {},
  upstreamResponded() {},
  proxiedResponseBroken() {}
}
