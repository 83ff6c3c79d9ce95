/** Forwards one request to an API with the access token of the session, and forwards the response to the client. */
import type { Context } from 'koa'
import { createFairQueue, type FairQueue, QueueError, type QueueLimits, type Turn } from '../../base/fair-queue.js'
import { requesterOf, type SessionRecord } from '../../cookie/session-record.js'
import { hasBody, postponeBody } from '../every-request/arrivals.js'
import type { Services } from '../middleware-services.js'
import { sessionRecord } from '../request/session.js'
import { unauthorized } from '../routes/require-tokens.js'
import { createExchange, isLoggedOut } from './exchange.js'
import type { FindRoute, ForwardRoute } from './routes.js'
import type { Upstreams } from './upstream.js'
import { bodyAlreadyRead, upstreamQueueFull } from './upstream-failure.js'

/**
 * The maximum numbers of requests. A request is in progress from the moment when it is sent until its response is complete, and
 * uses one connection to its host. It has one of the slots of its host from the end of its body until the beginning of its
 * response: while its body is sent, it needs none, because otherwise clients that send slowly would block the host.
 */
export const QUEUE_LIMITS: QueueLimits = {
  inProgress: 2048,
  ofOneQueue: 1024,
  // Lower than the number of slots, so that one user cannot take all slots of a host.
  ofOneUser: 48,
  ofOneSession: 32,
  // An API that takes 5 s and gets 100 requests a second has 500 of them.
  slots: 512,
  reserved: 8,
  waiting: 512
}

export function createForward(services: Services, findRoute: FindRoute, upstreams: Upstreams) {
  const { config, metrics } = services
  const queue = createFairQueue(QUEUE_LIMITS)
  const exchangeWithUpstream = createExchange(services, findRoute, upstreams, queue)
  metrics.watch('queued_requests', queue.length, { queue: 'api_proxy' })

  /**
   * Resolves in these cases:
   * - The response has ended, the API has aborted it, or the end of its session or the shutdown of this server has ended it.
   * - The client has disconnected.
   * - The session was logged out after its refresh. In this case, this function sends no response, and `requireTokens`
   *   responds with 401. If it was logged out while the request was queued, nothing is sent to the API.
   *
   * Rejects with HttpError if there is no response to forward.
   */
  return async function forward(ctx: Context, route: ForwardRoute): Promise<void> {
    const { req, res } = ctx
    // If the client disconnected while the session was being refreshed, nothing is sent to the API.
    if (res.destroyed) return
    const isUpload = hasBody(req)
    if (isUpload && req.readableDidRead) throw bodyAlreadyRead()
    const { rule } = route
    const silenceMs = (rule.timeoutSeconds ?? config.apiProxy.timeoutSeconds) * 1000
    const call = {
      queue: rule.targetOrigin,
      // `requireTokens` has found the session.
      ...requesterOf(sessionRecord(ctx) as SessionRecord),
      ...(isUpload && { isUploading: () => !req.complete })
    }
    let turn: Turn | undefined
    try {
      turn = queue.enter(call)
      const startsNow = turn.state === 'inProgress'
      const hasStarted = startsNow || (await waitInQueue(ctx, queue, turn, silenceMs))
      if (!hasStarted || res.destroyed) return
      if (!startsNow && isLoggedOut(ctx, services.sessions)) unauthorized(ctx)
      else await exchangeWithUpstream({ ctx, route, silenceMs, turn })
    } catch (error) {
      if (!(error instanceof QueueError)) throw error
      metrics.observe('upstream_header_duration_seconds', 0, { route: rule.route, error: 'queue_full' })
      throw upstreamQueueFull()
    } finally {
      if (turn) queue.leave(turn)
    }
  }
}

/** Waits until this request may be sent to the API. Resolves with false if the client disconnects first. */
async function waitInQueue({ req, res }: Context, queue: FairQueue, turn: Turn, limitMs: number): Promise<boolean> {
  const awaitBody = postponeBody(req)
  const leave = () => queue.leave(turn)
  res.once('close', leave)
  try {
    return await queue.wait(turn, limitMs)
  } finally {
    res.off('close', leave)
    awaitBody()
  }
}
