/** One exchange with an API: sends the request of the client to the API, and the response of the API to the client. */
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { Logger } from 'pino'
import type { FairQueue, Turn } from '../../base/fair-queue.js'
import type { Metrics, ResponseLabels } from '../../base/metrics.js'
import { hasBody } from '../edge/arrivals.js'
import { notesOf, requestId, requestLog } from '../request/request.js'
import { sessionRecord } from '../request/session.js'
import { mayBeExecuted } from '../request/session-status.js'
import { tokensOf } from '../routes/require-tokens.js'
import type { Services } from '../services.js'
import { createRequestBody, createRequestHeaders, namesNotSelected, type RequestBody } from './request.js'
import { createMapLocation, createResponseHeaders, type ResponseHead } from './response-headers.js'
import type { FindRoute, ForwardRoute } from './routes.js'
import type { Exchange, UpstreamError, UpstreamRequest, Upstreams } from './upstream.js'
import { errorOfFailure, upstreamError, upstreamUnauthorized } from './upstream-failure.js'

/** A request that may be sent to its API now. */
interface Admitted {
  readonly ctx: Context
  readonly route: ForwardRoute
  readonly silenceMs: number
  readonly queue: FairQueue
  readonly turn: Turn
}

/** What all exchanges share. */
interface Exchanges {
  readonly services: Services
  readonly upstreams: Upstreams
  readonly requestOf: RequestOf
  readonly setHeaders: SetHeaders
}

/** Creates the function for one exchange. It resolves and rejects like `forward` (`forward.ts`). */
export function createExchange(services: Services, findRoute: FindRoute, upstreams: Upstreams) {
  const requestOf = createRequestOf(services)
  const setHeaders = createSetHeaders(services, findRoute)
  return (admitted: Admitted) => exchangeWithUpstream({ services, upstreams, requestOf, setHeaders }, admitted)
}

function exchangeWithUpstream(
  { services, upstreams, requestOf, setHeaders }: Exchanges,
  admitted: Admitted
): Promise<void> {
  const { ctx, route, silenceMs, queue, turn } = admitted
  const { config, log, metrics, sessions, shutdown } = services
  const { maxBodyBytes } = config.apiProxy
  const { req, res } = ctx
  const reportHead = createHeadReport(admitted, metrics)
  let state: 'waiting' | 'responding' | 'over' = 'waiting'
  let exchange: Exchange | undefined
  let removeStopHook = () => {}
  const body = hasBody(req) ? createRequestBody(req, maxBodyBytes, () => exchange?.progressed()) : undefined
  body?.stream.once('end', () => queue.takeSlot(turn))

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
      else if (res.hasHeader('Set-Cookie') && isLoggedOut(ctx, sessions)) abort(resolve)
      else begin(statusCode, rawHeaders)
    }

    function begin(statusCode: number, rawHeaders: readonly Buffer[]) {
      const problem = setHeaders(res, route, { statusCode, rawHeaders })
      if (problem) return rejectWith(problem)
      state = 'responding'
      ctx.respond = false
      res.statusCode = statusCode
      // Send the headers immediately, because the first event of a stream may come minutes later. An empty write in
      // latin1 sends the bytes of the headers unchanged, whereas flushHeaders() would encode them as UTF-8.
      if (hasContent(ctx.method, statusCode)) res.write('', 'latin1')
      if (isEventStream(String(res.getHeader('Content-Type'))))
        removeStopHook = shutdown.hooks.onStop(() => abort(finish))
    }

    function failed(error: UpstreamError) {
      if (state === 'waiting') {
        reportHead({ error: error.reason })
        settle()
        reject(errorOfFailure(error, maxBodyBytes))
        return
      }
      reportIncomplete(ctx, route.rule.route, error, { log, metrics })
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

  function settle() {
    state = 'over'
    res.off('drain', resume)
    removeStopHook()
    body?.discard()
  }
}

type RequestOf = (ctx: Context, route: ForwardRoute, silenceMs: number, body?: RequestBody) => UpstreamRequest

/** Returns the function that converts a request of a client into one for the API, with the access token of the session. */
function createRequestOf({ config, log }: Services): RequestOf {
  const selectRequestHeaders = createRequestHeaders(config.apiProxy.requestHeaders)

  return function requestOf(ctx, { rule, target }, silenceMs, body) {
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

/** Sets the headers of the API's response. Returns the error with which the request fails if a header is not valid. */
type SetHeaders = (res: ServerResponse, route: ForwardRoute, head: ResponseHead) => Error | undefined

function createSetHeaders({ config, site }: Services, findRoute: FindRoute): SetHeaders {
  const selectResponseHeaders = createResponseHeaders(config.apiProxy.responseHeaders)
  const mapLocation = createMapLocation(findRoute, site.basePath)

  return function setHeaders(res, route, head) {
    const mapped = (location: string) => mapLocation(location, route)
    const setsCookie = res.hasHeader('Set-Cookie')
    const headers = selectResponseHeaders(head, { mapLocation: mapped, setsCookie })
    try {
      for (const [name, [value = '', ...more]] of headers)
        res.setHeader(name, more.length > 0 ? [value, ...more] : value)
    } catch (error) {
      // Node has rejected a header value. Remove the headers of the API's response, so that the error response does
      // not contain them.
      for (const name of headers.keys()) res.removeHeader(name)
      return upstreamError('invalid_response', error)
    }
    return undefined
  }
}

/** Returns the function that records when the headers of the response have arrived, or why there are none. */
function createHeadReport({ ctx, route, queue, turn }: Admitted, metrics: Pick<Metrics, 'upstreamResponded'>) {
  const startedAt = performance.now()
  return function reportHead(response: ResponseLabels) {
    queue.freeSlot(turn)
    const elapsedMs = performance.now() - startedAt
    notesOf(ctx).upstreamHeaderMs = Math.round(elapsedMs)
    metrics.upstreamResponded(route.rule.route, response, elapsedMs / 1000)
  }
}

function reportIncomplete(
  ctx: Context,
  route: string,
  err: UpstreamError,
  { log, metrics }: { readonly log: Logger; readonly metrics: Metrics }
): void {
  metrics.upstreamResponseIncomplete(route)
  requestLog(ctx, log).warn({ event: 'upstream_response_incomplete', route, err }, 'upstream broke off')
}

function isLoggedOut(ctx: Context, sessions: Services['sessions']): boolean {
  const record = sessionRecord(ctx)
  return record !== undefined && sessions.known(record.id).kind === 'over'
}

// A response to HEAD and a response with 204 or 304 have no body (RFC 9110 sections 6.4.1 and 9.3.2).
function hasContent(method: string, statusCode: number): boolean {
  return method !== 'HEAD' && statusCode !== 204 && statusCode !== 304
}

function isEventStream(contentType: string): boolean {
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
