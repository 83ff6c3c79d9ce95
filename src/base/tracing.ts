/**
 * Tracing: one span for each request, and for each call that a request causes. This file does not depend on the
 * OpenTelemetry packages. `open-telemetry.ts` loads them if tracing is on. If tracing is off, no `Tracing` is created,
 * so nothing in this file runs.
 */

import type { IncomingHttpHeaders } from 'node:http'
import { reasonOf } from './failure-reasons.js'

/** The names follow OpenTelemetry's semantic conventions. Values that are undefined are left out. */
export type Attributes = Readonly<Record<string, string | number | undefined>>

export interface Span {
  /** The trace id in 32 hexadecimal digits. */
  readonly traceId: string
  /** The headers that continue the trace in the next process, such as `traceparent` (W3C Trace Context section 3). */
  readonly headers: Readonly<Record<string, string>>
  rename(name: string): void
  set(attributes: Attributes): void
  /**
   * Ends the span. Further calls have no effect.
   * @param error the kind of the error, for example `timeout` or `502`; undefined if there was no error
   */
  end(error?: string): void
}

export interface Tracing {
  /**
   * Starts a span. Its parent is the span of the current request.
   * @param kind `server` for a request to this server, `client` for a request that this server sends
   * @param incoming the headers of a request to this server; the span continues their trace
   */
  start(name: string, kind: 'server' | 'client', attributes: Attributes, incoming?: IncomingHttpHeaders): Span
  /** Calls `work`. Spans that start in `work`, or later in its asynchronous calls, are children of `span`. */
  within<T>(span: Span, work: () => T): T
  /** Sends the remaining spans, for at most three seconds. */
  close(): Promise<void>
}

/** Calls `work` in a span of the kind `client`. The span has an error if `work` rejects. */
export async function inSpan<T>(
  tracing: Tracing,
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<T>
): Promise<T> {
  const span = tracing.start(name, 'client', attributes)
  try {
    return await tracing.within(span, () => work(span))
  } catch (error) {
    // The message of an error is not recorded, because it may quote the request.
    span.end(reasonOf(error) ?? '_OTHER')
    throw error
  } finally {
    span.end()
  }
}
