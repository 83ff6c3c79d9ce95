import type { Middleware } from 'koa'
import { HttpError } from './errors.js'

/** Nothing here reads a body, so none is waited for: the answer comes at once and the connection ends. */
export const refuseBodies: Middleware = function refuseBodies(ctx, next) {
  const { method, headers } = ctx.req
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (hasBody && (method === 'GET' || method === 'HEAD')) {
    throw new HttpError(413, 'invalid_request', 'Requests to this server have no body.', { Connection: 'close' })
  }
  return next()
}
