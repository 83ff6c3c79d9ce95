/**
 * The events that the server counts. The code that reports an event does not know if metrics are enabled. Every label has a
 * small set of values. HTTP statuses are the only labels that come from clients or providers.
 */
export interface Metrics {
  loginStarted(): void
  /** @param outcome `succeeded`, `repeated`, or the error code of the response */
  callbackEnded(outcome: string): void
  /**
   * Called for each request that needed a refresh.
   * @param outcome the outcome in the log: `refreshed`, `coalesced`, `kept`, `partial`, `rejected` or `failed`
   */
  refreshEnded(outcome: string): void
  /**
   * Called for each call to the identity provider.
   * @param outcome a status such as `200`, or a problem such as `timeout` or `unreachable`
   */
  providerCalled(endpoint: string, outcome: string, seconds: number): void
  /** Called for each request with a session cookie. */
  sessionRead(outcome: 'opened' | 'unreadable' | 'expired'): void
  /** @param bytes the size of all cookies of the session */
  sessionWritten(bytes: number): void
  /** Called for each response to a gateway. */
  forwardAuthEnded(status: number): void
  requestEnded(route: string, status: number, seconds: number): void
  /**
   * Called when the headers of a proxied response have arrived, or when the request has failed before.
   * @param rule the position of the rule in `proxy.routes`
   * @param outcome the status of the upstream, or `timeout`, `unreachable`, `unusable`, `busy` or `aborted`
   */
  upstreamAnswered(rule: number, outcome: string, seconds: number): void
  /** Called when the upstream broke the connection in the middle of a response. */
  proxiedAnswerBroken(rule: number): void
}

/** Ignores all events. Used if metrics are disabled. */
export const noMetrics: Metrics = {
  loginStarted() {},
  callbackEnded() {},
  refreshEnded() {},
  providerCalled() {},
  sessionRead() {},
  sessionWritten() {},
  forwardAuthEnded() {},
  requestEnded() {},
  upstreamAnswered() {},
  proxiedAnswerBroken() {}
}
