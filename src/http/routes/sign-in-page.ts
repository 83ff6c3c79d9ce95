import type { Middleware } from 'koa'
import { HttpError } from '../errors/http-error.js'

/**
 * Shows the error page for 401 to a user who opens a URL in a tab that needs a session. Scripts still get an empty body. A
 * script may also accept HTML, but its requests have a different `Sec-Fetch-Mode`.
 */
export const signInPage: Middleware = async function signInPage(ctx, next) {
  await next()
  if (ctx.status !== 401 || (ctx.get('Sec-Fetch-Mode') || 'navigate') !== 'navigate') return
  if (ctx.accepts('json', 'html') !== 'html') return
  throw new HttpError({ status: 401, error: 'unauthorized', description: 'This browser has no session.' })
}
