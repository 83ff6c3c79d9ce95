import type { Context } from 'koa'
import type { RequestLog } from './request.js'

// Error codes of a client that disconnected during a response.
const CLIENT_DISCONNECTED = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])

/**
 * For `app.on('error')`: logs a response that fails while it is sent, after the errors layer has finished. Without a
 * listener Koa would bypass the log and print a stack for every client that stops loading a page.
 */
export function brokenAnswers(requestLog: RequestLog) {
  // Koa reports one failure twice: for the body that it sends, and for the connection that is closed because of it.
  const logged = new WeakSet<Context>()

  return function brokenAnswer(error: NodeJS.ErrnoException, ctx: Context): void {
    if (logged.has(ctx)) return
    logged.add(ctx)
    const level = CLIENT_DISCONNECTED.has(error.code ?? '') ? 'debug' : 'error'
    requestLog(ctx)[level]({ event: 'answer_broken', err: error }, 'sending the response failed')
  }
}
