/** Forwards one request to an API with the access token of the session, and forwards the response to the client. */
import type { Context } from 'koa'
import type { Requester } from '../../base/fair-queue.js'
import { hasBody, postponeBody } from '../edge/arrivals.js'
import { sessionRecord } from '../request/session.js'
import type { Services } from '../services.js'
import { createExchange } from './exchange.js'
import type { FindRoute, ForwardRoute } from './routes.js'
import type { Upstreams } from './upstream.js'
import { bodyAlreadyRead, upstreamQueueFull } from './upstream-failure.js'
import { createUpstreamQueue, type QueueEntry, UpstreamQueueError } from './upstream-queue.js'

export function createForward(services: Services, findRoute: FindRoute, upstreams: Upstreams) {
  const { config, metrics } = services
  const exchangeWithUpstream = createExchange(services, findRoute, upstreams)
  const queue = createUpstreamQueue()
  metrics.watchQueue('api_proxy', queue.length)

  /**
   * Resolves in these cases:
   * - The response has ended, the API has aborted it, or the shutdown of this server has ended it.
   * - The client has disconnected.
   * - The session was logged out after its refresh. In this case, this function sends no response, and `requireTokens`
   *   responds with 401.
   *
   * Rejects with HttpError if there is no response to forward.
   */
  return async function forward(ctx: Context, route: ForwardRoute): Promise<void> {
    // If the client disconnected while the session was being refreshed, nothing is sent to the API.
    if (ctx.res.destroyed) return
    if (hasBody(ctx.req) && ctx.req.readableDidRead) throw bodyAlreadyRead()
    const { rule } = route
    const silenceMs = (rule.timeoutSeconds ?? config.apiProxy.timeoutSeconds) * 1000
    const isUploading = () => hasBody(ctx.req) && !ctx.req.complete
    let entry: QueueEntry | undefined
    try {
      entry = queue.enter({ origin: rule.targetOrigin, ...requesterOf(ctx), isUploading })
      const hasStarted = entry.hasStarted() || (await waitInQueue(ctx, entry, silenceMs))
      if (hasStarted && !ctx.res.destroyed) await exchangeWithUpstream({ ctx, route, silenceMs, entry })
    } catch (error) {
      if (!(error instanceof UpstreamQueueError)) throw error
      metrics.upstreamResponded(rule.route, { error: 'queue_full' }, 0)
      throw upstreamQueueFull()
    } finally {
      entry?.end()
    }
  }
}

/** Waits until this request may be sent to the API. Resolves with false if the client disconnects first. */
async function waitInQueue({ req, res }: Context, entry: QueueEntry, limitMs: number): Promise<boolean> {
  const awaitBody = postponeBody(req)
  res.once('close', entry.end)
  try {
    return await entry.wait(limitMs)
  } finally {
    res.off('close', entry.end)
    awaitBody()
  }
}

/**
 * Returns the session and the user to which the limits of the proxy apply. The issuer and the subject identify a user
 * (OpenID Connect Core section 2). Without the scope `openid`, the user is unknown, so each session counts as a user.
 * Call this function only after `requireTokens` has run.
 */
function requesterOf(ctx: Context): Requester {
  const record = sessionRecord(ctx)
  const session = `session ${record?.id ?? ''}`
  const identity = record?.identity
  return { session, user: identity ? `user ${JSON.stringify([identity.iss, identity.sub])}` : session }
}
