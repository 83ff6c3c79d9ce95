/**
 * What the server counts. Each part says what happened to it; whether anyone counts is decided elsewhere. Every label takes
 * its values from a short list: of what a client or a provider sends, an HTTP status is all that ever becomes one.
 */
export interface Metrics {
  loginStarted(): void
  /** How a callback ended: `succeeded`, `repeated`, or the error code of its answer. */
  callbackEnded(outcome: string): void
  /** For each request that needed it, as in the log: `refreshed`, `coalesced`, `kept`, `partial`, `rejected` or `failed`. */
  refreshEnded(outcome: string): void
  /** One call to an endpoint of the identity provider; the outcome is a status such as `200`, or `timeout`, `unreachable`. */
  providerCalled(endpoint: string, outcome: string, seconds: number): void
  /** What became of the session cookie of a request; nothing is said of requests without one. */
  sessionRead(outcome: 'opened' | 'unreadable' | 'expired'): void
  /** A session was written, in this many bytes of cookies. */
  sessionWritten(bytes: number): void
  /** A gateway was answered. */
  forwardAuthEnded(status: number): void
  requestEnded(route: string, status: number, seconds: number): void
  /**
   * The head of a proxied answer came, after so many seconds, or will not come. The rule is its number in `proxy.routes`; the outcome
   * is the upstream's status, or `timeout`, `unreachable`, `unusable`, `busy`, `aborted`.
   */
  upstreamAnswered(rule: number, outcome: string, seconds: number): void
  /** The upstream broke off in the middle of an answer. */
  proxiedAnswerBroken(rule: number): void
}

/** For a server that nobody watches. */
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
