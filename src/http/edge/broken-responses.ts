import type { Context } from 'koa'
import type { RequestLog } from './request.js'

// Error codes for a client that disconnected during a response.
const CLIENT_DISCONNECTED = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])

/**
 * Creates the listener for Koa's `error` event. It logs a response that fails while it is being sent, because the
 * middleware `errors` has finished by then. Without a listener, Koa would print a stack trace whenever a client stops
 * loading a page.
 */
export function brokenResponses(requestLog: RequestLog) {
  // Koa reports one failure twice, once for the body and once for the connection.
  const logged = new WeakSet<Context>()

  return function brokenResponse(error: NodeJS.ErrnoException, ctx: Context): void {
    if (logged.has(ctx)) return
    logged.add(ctx)
    const level = CLIENT_DISCONNECTED.has(error.code ?? '') ? 'debug' : 'error'
    requestLog(ctx)[level]({ event: 'answer_broken', err: error }, 'sending the response failed')
  }
}
