/** One exchange with an API: sends the request of the client to the API, and the response of the API to the client. */
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { FairQueue, Turn } from '../../base/fair-queue.js'
import type { ResponseLabels } from '../../base/metrics.js'
import { hasBody } from '../every-request/arrivals.js'
import type { Services } from '../middleware-services.js'
import { notesOf, requestId, requestLog } from '../request/request.js'
import { sendHead } from '../request/response-head.js'
import { sessionRecord } from '../request/session.js'
import { mayBeExecuted } from '../request/session-status.js'
import { tokensOf } from '../routes/require-tokens.js'
import { createRequestBody, type RequestBody } from './request-body.js'
import { createRequestHeaders, namesNotSelected } from './request-headers.js'
import { createMapLocation, createResponseHeaders, namesDropped, type ResponseHead } from './response-headers.js'
import type { FindRoute, ForwardRoute } from './routes.js'
import type { Exchange, UpstreamError, UpstreamRequest, Upstreams } from './upstream.js'
import { createUnauthorizedReport, errorOfFailure, upstreamError, upstreamUnauthorized } from './upstream-failure.js'

// Node considers 64 KiB as full, which is one chunk of a fast upstream. Pausing after each chunk slows a download down.
const MAX_BUFFERED_BYTES = 256 * 1024

/** A request that may be sent to its API now. */
interface Admitted {
  readonly ctx: Context
  readonly route: ForwardRoute
  readonly silenceMs: number
  readonly turn: Turn
}

/** Creates the function for one exchange. It resolves and rejects like `forward` (`forward.ts`). */
export function createExchange(services: Services, findRoute: FindRoute, upstreams: Upstreams, queue: FairQueue) {
  const { config, log, metrics, sessions, shutdown } = services
  const { maxBodyBytes } = config.apiProxy
  const requestOf = createRequestOf(services)
  const headersOf = createHeadersOf(services, findRoute)
  const reportUnauthorized = createUnauthorizedReport(log)

  return function exchangeWithUpstream({ ctx, route, silenceMs, turn }: Admitted): Promise<void> {
    const { req, res } = ctx
    const startedAt = performance.now()
    let state: 'waiting' | 'responding' | 'over' = 'waiting'
    let exchange: Exchange | undefined
    let isHeadSent = false
    let hasLength = false
    let isEventStream = false
    let removeStopHook: (() => void) | undefined
    let stopWatching: (() => void) | undefined
    const body = hasBody(req) ? createRequestBody(req, maxBodyBytes, () => exchange?.progressed()) : undefined
    body?.stream.once('end', () => queue.takeSlot(turn))

    return new Promise((resolve, reject) => {
      res.once('close', onClientGone)
      mayBeExecuted(ctx)
      exchange = upstreams.send(requestOf(ctx, route, silenceMs, body), { responded, received, lasts, ended, failed })

      function responded(statusCode: number, rawHeaders: readonly Buffer[]) {
        reportHead({ code: statusCode })
        if (statusCode === 401) {
          reportUnauthorized(ctx, route.rule.route)
          abort(() => reject(upstreamUnauthorized()))
        } else if (statusCode === 407) {
          const error = upstreamError('invalid_response', new Error('it asks for proxy authentication'))
          abort(() => reject(error))
        }
        // The session was refreshed for this request and then logged out. The API's response would set the new session
        // cookies, so the response is dropped, and `requireTokens` responds with 401.
        else if (res.hasHeader('Set-Cookie') && isLoggedOut(ctx, sessions)) abort(resolve)
        else begin({ statusCode, rawHeaders })
      }

      function begin(head: ResponseHead) {
        const headers = headersOf(ctx, route, head)
        try {
          sendHead(ctx, head.statusCode, headers)
        } catch (error) {
          // Node has rejected a header value.
          return abort(() => reject(upstreamError('invalid_response', error)))
        }
        state = 'responding'
        hasLength = headers.has('content-length')
        isEventStream = /^text\/event-stream\b/i.test(String(headers.get('content-type')))
        if (isEventStream) removeStopHook = shutdown.hooks.onStop(endEarly)
        // If undici has read more of the response already, it calls the other functions before this microtask runs, so that a short
        // response is sent as a whole.
        if (hasContent(ctx.method, head.statusCode)) queueMicrotask(flushHead)
      }

      // Send the headers immediately, because the first event of a stream may come minutes later. An empty write in
      // latin1 sends the bytes of the headers unchanged, whereas flushHeaders() would encode them as UTF-8.
      function flushHead() {
        if (state === 'responding' && !isHeadSent) res.write('', 'latin1')
        isHeadSent = true
      }

      function received(chunk: Buffer): boolean {
        isHeadSent = true
        const isTaken = res.write(chunk) || res.writableLength < MAX_BUFFERED_BYTES
        if (!isTaken) res.once('drain', resume)
        return isTaken
      }

      // A short response ends before this function is called, so it costs nothing that its session can end.
      function lasts() {
        const record = sessionRecord(ctx)
        if (record && state === 'responding') stopWatching ??= sessions.whenOver(record, onSessionOver)
      }

      function onSessionOver() {
        requestLog(ctx, log).debug(
          { event: 'response_ended_with_session', route: route.rule.route },
          'the session is over'
        )
        endEarly()
      }

      /** An event stream ends cleanly, so that the browser connects again. The client must see that other responses are incomplete. */
      function endEarly() {
        abort(() => {
          if (isEventStream) res.end()
          else abortResponse(res, hasLength)
          resolve()
        })
      }

      function ended() {
        settle()
        res.end()
        resolve()
      }

      function failed(error: UpstreamError) {
        const { route: name } = route.rule
        if (state === 'waiting') {
          reportHead({ error: error.reason })
          settle()
          return reject(errorOfFailure(error, maxBodyBytes))
        }
        metrics.count('upstream_responses_incomplete_total', { route: name })
        const fields = { event: 'upstream_response_incomplete', route: name, err: error }
        requestLog(ctx, log).warn(fields, 'upstream broke off')
        flushHead()
        settle()
        abortResponse(res, hasLength)
        resolve()
      }

      function onClientGone() {
        if (state === 'over') return
        if (state === 'waiting') reportHead({ error: 'aborted' })
        abort(resolve)
      }

      function abort(then: () => void) {
        exchange?.abort()
        settle()
        then()
      }
    })

    function reportHead(response: ResponseLabels) {
      queue.freeSlot(turn)
      const elapsedMs = performance.now() - startedAt
      notesOf(ctx).upstreamHeaderMs = Math.round(elapsedMs)
      const labels = { route: route.rule.route, ...response }
      metrics.observe('upstream_header_duration_seconds', elapsedMs / 1000, labels)
    }

    function resume() {
      exchange?.resume()
    }

    function settle() {
      state = 'over'
      removeStopHook?.()
      stopWatching?.()
      body?.discard()
    }
  }
}

type RequestOf = (ctx: Context, route: ForwardRoute, silenceMs: number, body?: RequestBody) => UpstreamRequest

/** Returns the function that converts a request of a client into one for the API, with the access token of the session. */
function createRequestOf({ config, log }: Services): RequestOf {
  const selectRequestHeaders = createRequestHeaders(config.apiProxy.requestHeaders)

  return function requestOf(ctx, { rule, target }, silenceMs, body) {
    const { rawHeaders } = ctx.req
    const length = ctx.req.headers['content-length']
    const headers = selectRequestHeaders(rawHeaders)
    if (log.isLevelEnabled('debug')) {
      const names = namesNotSelected(rawHeaders, headers)
      const fields = { event: 'request_headers_not_forwarded', route: rule.route, headers: names }
      requestLog(ctx, log).debug(fields, 'some request headers were not forwarded')
    }
    headers.push('authorization', `Bearer ${tokensOf(ctx)[rule.token].access_token}`)
    headers.push('via', '1.1 platform-auth-server', 'x-request-id', requestId(ctx))
    return {
      origin: rule.targetOrigin,
      target,
      method: ctx.method,
      headers,
      body: body && { ...body, length: length === undefined ? undefined : Number(length) },
      silenceMs
    }
  }
}

/** Creates the function that returns the headers of the API's response for the client. */
function createHeadersOf({ config, log, site }: Services, findRoute: FindRoute) {
  const selectResponseHeaders = createResponseHeaders(config.apiProxy.responseHeaders)
  const mapLocation = createMapLocation(findRoute, site.basePath)

  return function headersOf(ctx: Context, route: ForwardRoute, head: ResponseHead) {
    const mapped = (location: string) => mapLocation(location, route)
    const headers = selectResponseHeaders(head, { mapLocation: mapped, setsCookie: ctx.res.hasHeader('Set-Cookie') })
    if (log.isLevelEnabled('debug')) {
      const fields = {
        event: 'response_headers_not_forwarded',
        route: route.rule.route,
        headers: namesDropped(head, headers)
      }
      requestLog(ctx, log).debug(fields, 'some response headers were not forwarded')
    }
    return headers
  }
}

export function isLoggedOut(ctx: Context, sessions: Services['sessions']): boolean {
  const record = sessionRecord(ctx)
  return record !== undefined && sessions.known(record.id).kind === 'over'
}

// A response to HEAD and a response with 204 or 304 have no body (RFC 9110 sections 6.4.1 and 9.3.2).
function hasContent(method: string, statusCode: number): boolean {
  return method !== 'HEAD' && statusCode !== 204 && statusCode !== 304
}

/**
 * Ends an incomplete response so that the client notices the error. A response with neither a length nor chunks ends
 * when its connection is closed. So only a reset of the connection shows that such a response is incomplete.
 */
function abortResponse(res: ServerResponse, hasLength: boolean): void {
  if (res.chunkedEncoding || hasLength) res.destroy()
  else res.socket?.resetAndDestroy()
}
