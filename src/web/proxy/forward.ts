/** Forwards one request to an API with the access token of the session, and forwards the response to the client. */
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { Requester } from '../../base/fair-queue.js'
import type { ResponseLabels } from '../../base/metrics.js'
import { hasBody, postponeBody } from '../edge/arrivals.js'
import { requestId, requestLog } from '../request/request.js'
import { sessionRecord } from '../request/session.js'
import { mayBeExecuted } from '../request/session-status.js'
import { tokensOf } from '../routes/require-tokens.js'
import type { Services } from '../services.js'
import { createRequestBody, createRequestHeaders, namesNotSelected, type RequestBody } from './request.js'
import { createMapLocation, createResponseHeaders } from './response-headers.js'
import type { FindRoute, ForwardRoute } from './routes.js'
import type { Exchange, UpstreamError, Upstreams } from './upstream.js'
import {
  bodyAlreadyRead,
  errorOfFailure,
  upstreamError,
  upstreamQueueFull,
  upstreamUnauthorized
} from './upstream-failure.js'
import { createUpstreamQueue, type QueueEntry, UpstreamQueueError } from './upstream-queue.js'

export function createForward(services: Services, findRoute: FindRoute, upstreams: Upstreams) {
  const { config, site, sessions, shutdown, metrics, log } = services
  const { requestHeaders, responseHeaders, timeoutSeconds, maxBodyBytes } = config.apiProxy
  const selectRequestHeaders = createRequestHeaders(requestHeaders)
  const selectResponseHeaders = createResponseHeaders(responseHeaders)
  const mapLocation = createMapLocation(findRoute, site.basePath)
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
    const silenceMs = (rule.timeoutSeconds ?? timeoutSeconds) * 1000
    const isUploading = () => hasBody(ctx.req) && !ctx.req.complete
    let entry: QueueEntry | undefined
    try {
      entry = queue.enter({ origin: rule.targetOrigin, ...requesterOf(ctx), isUploading })
      const hasStarted = entry.hasStarted() || (await waitInQueue(ctx, entry, silenceMs))
      if (hasStarted && !ctx.res.destroyed) await exchangeWithUpstream(ctx, route, silenceMs, entry)
    } catch (error) {
      if (!(error instanceof UpstreamQueueError)) throw error
      metrics.upstreamResponded(rule.route, { error: 'queue_full' }, 0)
      throw upstreamQueueFull()
    } finally {
      entry?.end()
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

  function exchangeWithUpstream(
    ctx: Context,
    route: ForwardRoute,
    silenceMs: number,
    entry: QueueEntry
  ): Promise<void> {
    const { rule } = route
    const { req, res } = ctx
    const startedAt = performance.now()
    let state: 'waiting' | 'responding' | 'over' = 'waiting'
    let exchange: Exchange | undefined
    let removeStopHook = () => {}
    const body = hasBody(req) ? createRequestBody(req, maxBodyBytes, () => exchange?.progressed()) : undefined
    body?.stream.once('end', entry.bodySent)

    return new Promise((resolve, reject) => {
      res.on('close', onClientGone)
      res.on('drain', resume)
      mayBeExecuted(ctx)
      exchange = upstreams.send(requestOf(ctx, route, silenceMs, body), {
        responded,
        received: chunk => res.write(chunk),
        ended: finish,
        failed
      })

      function responded(statusCode: number, rawHeaders: readonly Buffer[]) {
        reportHead({ code: statusCode })
        if (statusCode === 401) rejectWith(upstreamUnauthorized())
        else if (statusCode === 407)
          rejectWith(upstreamError('invalid_response', new Error('it asks for proxy authentication')))
        // The session was refreshed for this request and then logged out. The API's response would set the new session
        // cookies, so the response is dropped, and `requireTokens` responds with 401.
        else if (res.hasHeader('Set-Cookie') && isLoggedOut(ctx)) abort(resolve)
        else begin(statusCode, rawHeaders)
      }

      function begin(statusCode: number, rawHeaders: readonly Buffer[]) {
        const mapped = (location: string) => mapLocation(location, route)
        const setsCookie = res.hasHeader('Set-Cookie')
        const headers = selectResponseHeaders({ statusCode, rawHeaders }, { mapLocation: mapped, setsCookie })
        try {
          for (const [name, [value = '', ...more]] of headers)
            res.setHeader(name, more.length > 0 ? [value, ...more] : value)
        } catch (error) {
          // Node has rejected a header value. Remove the headers of the API's response, so that the error response does
          // not contain them.
          for (const name of headers.keys()) res.removeHeader(name)
          rejectWith(upstreamError('invalid_response', error))
          return
        }
        state = 'responding'
        ctx.respond = false
        res.statusCode = statusCode
        // Send the headers immediately, because the first event of a stream may come minutes later. An empty write in
        // latin1 sends the bytes of the headers unchanged, whereas flushHeaders() would encode them as UTF-8.
        if (hasContent(ctx.method, statusCode)) res.write('', 'latin1')
        if (isEventStream(headers.get('content-type'))) removeStopHook = shutdown.hooks.onStop(() => abort(finish))
      }

      function failed(error: UpstreamError) {
        if (state === 'waiting') {
          reportHead({ error: error.reason })
          settle()
          reject(errorOfFailure(error, maxBodyBytes))
          return
        }
        metrics.upstreamResponseIncomplete(rule.route)
        requestLog(ctx, log).warn(
          { event: 'upstream_response_incomplete', route: rule.route, err: error },
          'upstream broke off'
        )
        settle()
        abortResponse(res)
        resolve()
      }

      function onClientGone() {
        if (state === 'over') return
        if (state === 'waiting') reportHead({ error: 'aborted' })
        abort(resolve)
      }

      function rejectWith(error: unknown) {
        abort(() => reject(error))
      }

      function finish() {
        settle()
        res.end()
        resolve()
      }

      function abort(then: () => void) {
        exchange?.abort()
        settle()
        then()
      }
    })

    function resume() {
      exchange?.resume()
    }

    function reportHead(response: ResponseLabels) {
      entry.headReceived()
      const elapsedMs = performance.now() - startedAt
      ctx.state.upstreamMs = Math.round(elapsedMs)
      metrics.upstreamResponded(rule.route, response, elapsedMs / 1000)
    }

    function settle() {
      state = 'over'
      res.off('drain', resume)
      removeStopHook()
      body?.discard()
    }
  }

  function isLoggedOut(ctx: Context): boolean {
    const record = sessionRecord(ctx)
    return record !== undefined && sessions.known(record.id).kind === 'over'
  }

  function requestOf(ctx: Context, { rule, target }: ForwardRoute, silenceMs: number, body?: RequestBody) {
    const { rawHeaders } = ctx.req
    const length = ctx.req.headers['content-length']
    const selected = selectRequestHeaders(rawHeaders)
    if (log.isLevelEnabled('debug')) {
      const headers = namesNotSelected(rawHeaders, selected)
      const fields = { event: 'request_headers_not_forwarded', route: rule.route, headers }
      requestLog(ctx, log).debug(fields, 'some request headers were not forwarded')
    }
    return {
      origin: rule.targetOrigin,
      target,
      method: ctx.method,
      headers: [
        ...selected,
        'authorization',
        `Bearer ${tokensOf(ctx)[rule.token].access_token}`,
        'via',
        '1.1 platform-auth-server',
        'x-request-id',
        requestId(ctx)
      ],
      body: body && { ...body, length: length === undefined ? undefined : Number(length) },
      silenceMs
    }
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

// A response to HEAD and a response with 204 or 304 have no body (RFC 9110 sections 6.4.1 and 9.3.2).
function hasContent(method: string, statusCode: number): boolean {
  return method !== 'HEAD' && statusCode !== 204 && statusCode !== 304
}

function isEventStream([contentType = '']: readonly string[] = []): boolean {
  return /^text\/event-stream\b/i.test(contentType)
}

/**
 * Ends an incomplete response so that the client notices the error. A response with neither a length nor chunks ends
 * when its connection is closed. So only a reset of the connection shows that such a response is incomplete.
 */
function abortResponse(res: ServerResponse): void {
  if (res.chunkedEncoding || res.hasHeader('Content-Length')) res.destroy()
  else res.socket?.resetAndDestroy()
}
