import type { Context } from 'koa'
import type { RequestLog } from './request.js'

// How it looks when the client hung up in the middle of an answer.
const HUNG_UP = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])

/**
 * For `app.on('error')`: what breaks after the errors layer is through, with the answer already on its way. Without a
 * listener Koa prints it past the log, a stack for everyone who stops loading a page.
 */
export function brokenAnswers(requestLog: RequestLog) {
  // Koa hears of it twice: from what is sent, and from the connection that is cut because of it.
  const logged = new WeakSet<Context>()

  return function brokenAnswer(error: NodeJS.ErrnoException, ctx: Context): void {
    if (logged.has(ctx)) return
    logged.add(ctx)
    const level = HUNG_UP.has(error.code ?? '') ? 'debug' : 'error'
    requestLog(ctx)[level]({ event: 'answer_broken', err: error }, 'the answer did not get through')
  }
}
