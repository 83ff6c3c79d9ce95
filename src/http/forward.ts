/** One proxied request from the refresh step to the last byte of the answer. */
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { Auth } from '../auth/index.js'
import type { ProxyRule } from '../config/proxy-rules.js'
import type { Metrics } from '../metrics/metrics.js'
import { createAnswerHeaders } from '../proxy/answer-headers.js'
import { createMapLocation } from '../proxy/location.js'
import { BodyTooLargeError, createRequestBody, type RequestBody } from '../proxy/request-body.js'
import { createRequestHeaders } from '../proxy/request-headers.js'
import type { FindRoute, Route } from '../proxy/routes.js'
import { BusyError, createTurns, type Turn } from '../proxy/turns.js'
import type { Exchange, FailureKind, UpstreamFailure, UpstreamRequest, Upstreams } from '../proxy/upstream.js'
import type { ShutdownHooks } from '../support/shutdown-hooks.js'
import { hasBody } from './body-timeout.js'
import { HttpError } from './http-error.js'
import type { RequestLog } from './request.js'
import { tokensOf } from './require-tokens.js'
import { sessionRecord } from './session.js'

export type ForwardRoute = Extract<Route, { kind: 'forward' }>

export interface ForwardParts {
  readonly findRoute: FindRoute
  readonly basePath: string
  readonly upstreams: Upstreams
  readonly requestHeaders: readonly string[]
  readonly answerHeaders: readonly string[]
  readonly timeoutSeconds: number
  readonly maxBodyBytes: number
  readonly auth: Pick<Auth, 'isLoggedOutHere'>
  readonly shutdownHooks: ShutdownHooks
  readonly metrics: Pick<Metrics, 'upstreamAnswered' | 'proxiedAnswerBroken'>
  readonly requestLog: RequestLog
}

/** Resolves when the answer has ended or the client has left. Rejects with HttpError where there is no answer to pass on. */
export type Forward = (ctx: Context, route: ForwardRoute) => Promise<void>

export function createForward(parts: ForwardParts): Forward {
  const { upstreams, maxBodyBytes, auth, shutdownHooks, metrics, requestLog } = parts
  const selectRequestHeaders = createRequestHeaders(parts.requestHeaders)
  const selectAnswerHeaders = createAnswerHeaders(parts.answerHeaders)
  const mapLocation = createMapLocation(parts.findRoute, parts.basePath)
  const turns = createTurns()

  return async function forward(ctx, route) {
    // The client may have left during a refresh. Then nothing is sent.
    if (ctx.res.destroyed) return
    const { rule } = route
    const silenceMs = (rule.timeoutSeconds ?? parts.timeoutSeconds) * 1000
    const turn = takeTurn(ctx, rule)
    try {
      const hasCome = turn.hasCome() || (await waitInLine(ctx, rule, turn, silenceMs))
      if (hasCome && !ctx.res.destroyed) await carry(ctx, route, silenceMs, turn)
    } finally {
      turn.end()
    }
  }

  function takeTurn(ctx: Context, rule: ProxyRule): Turn {
    try {
      return turns.take(rule.targetOrigin, sessionRecord(ctx)?.id ?? '')
    } catch (error) {
      throw busyOr(error, rule)
    }
  }

  /** Resolves with false if the client leaves. Then nothing is sent. */
  async function waitInLine({ res }: Context, rule: ProxyRule, turn: Turn, patienceMs: number): Promise<boolean> {
    res.once('close', turn.end)
    try {
      return await turn.wait(patienceMs)
    } catch (error) {
      throw busyOr(error, rule)
    } finally {
      res.off('close', turn.end)
    }
  }

  function busyOr(error: unknown, rule: ProxyRule): unknown {
    if (!(error instanceof BusyError)) return error
    metrics.upstreamAnswered(rule.number, 'busy', 0)
    const description = 'Too many requests to the API are under way.'
    const headers = { 'Retry-After': '1' }
    return new HttpError({ status: 503, error: 'temporarily_unavailable', description, headers })
  }

  function carry(ctx: Context, { rule, target }: ForwardRoute, silenceMs: number, turn: Turn): Promise<void> {
    const { req, res } = ctx
    const startedAt = performance.now()
    let state: 'waiting' | 'answering' | 'over' = 'waiting'
    let exchange: Exchange | undefined
    let forgetStop = () => {}
    const body = hasBody(req) ? createRequestBody(req, maxBodyBytes, () => exchange?.progressed()) : undefined

    return new Promise((resolve, reject) => {
      res.on('close', clientLeft)
      res.on('drain', resume)
      exchange = upstreams.send(requestOf(ctx, { rule, target, silenceMs, body }), {
        answered,
        received: chunk => res.write(chunk),
        ended: finish,
        failed
      })

      function answered(statusCode: number, rawHeaders: readonly Buffer[]) {
        noteHead(String(statusCode))
        if (statusCode === 401) refuse(unauthorized())
        else if (statusCode === 407) refuse(failure('unusable', new Error('it asks for proxy authentication')))
        // A refreshed session would go out with this answer. The refresh step sees that nothing was sent and answers 401.
        else if (res.hasHeader('Set-Cookie') && isLoggedOut(ctx)) giveUp(resolve)
        else begin(statusCode, rawHeaders)
      }

      function begin(statusCode: number, rawHeaders: readonly Buffer[]) {
        const mapped = (location: string) => mapLocation(location, { rule, target })
        const setsCookie = res.hasHeader('Set-Cookie')
        const headers = selectAnswerHeaders({ statusCode, rawHeaders }, { mapLocation: mapped, setsCookie })
        try {
          for (const [name, [value = '', ...more]] of headers)
            res.setHeader(name, more.length > 0 ? [value, ...more] : value)
        } catch (error) {
          // Bytes that no header may hold. The error answer must not have the headers of this one.
          for (const name of headers.keys()) res.removeHeader(name)
          refuse(failure('unusable', error))
          return
        }
        state = 'answering'
        ctx.respond = false
        res.statusCode = statusCode
        // The head must not wait for the body: the first event of a stream may be minutes away. An empty write in
        // latin1 sends the header bytes as they are, where flushHeaders() would encode them as UTF-8.
        if (hasContent(ctx.method, statusCode)) res.write('', 'latin1')
        if (isEventStream(headers.get('content-type'))) forgetStop = shutdownHooks.onStop(() => giveUp(finish))
      }

      function failed(error: UpstreamFailure) {
        if (state === 'waiting') {
          noteHead(error.kind)
          settle()
          reject(failureOf(error))
          return
        }
        metrics.proxiedAnswerBroken(rule.number)
        requestLog(ctx).warn({ event: 'proxied_answer_broken', rule: rule.number, err: error }, 'upstream broke off')
        settle()
        breakOff(res)
        resolve()
      }

      function clientLeft() {
        if (state === 'over') return
        if (state === 'waiting') noteHead('aborted')
        giveUp(resolve)
      }

      function refuse(error: unknown) {
        giveUp(() => reject(error))
      }

      function finish() {
        settle()
        res.end()
        resolve()
      }

      function giveUp(then: () => void) {
        exchange?.abort()
        settle()
        then()
      }
    })

    function resume() {
      exchange?.resume()
    }

    function noteHead(outcome: string) {
      turn.headCame()
      const elapsedMs = performance.now() - startedAt
      ctx.state.upstreamMs = Math.round(elapsedMs)
      metrics.upstreamAnswered(rule.number, outcome, elapsedMs / 1000)
    }

    function settle() {
      state = 'over'
      res.off('drain', resume)
      forgetStop()
      body?.discard()
    }
  }

  function isLoggedOut(ctx: Context): boolean {
    const record = sessionRecord(ctx)
    return record !== undefined && auth.isLoggedOutHere(record.id)
  }

  function requestOf(
    ctx: Context,
    { rule, target, silenceMs, body }: Pick<ForwardRoute, 'rule' | 'target'> & SendOptions
  ): UpstreamRequest {
    const length = ctx.req.headers['content-length']
    return {
      origin: rule.targetOrigin,
      target,
      method: ctx.method,
      headers: [
        ...selectRequestHeaders(ctx.req.rawHeaders),
        'authorization',
        `Bearer ${tokensOf(ctx)[rule.token].access_token}`,
        'via',
        '1.1 platform-auth-server'
      ],
      body: body && { ...body, length: length === undefined ? undefined : Number(length) },
      silenceMs
    }
  }

  function failureOf(error: UpstreamFailure): HttpError {
    return error.cause instanceof BodyTooLargeError ? tooLarge(maxBodyBytes) : failure(error.kind, error.cause)
  }
}

interface SendOptions {
  readonly silenceMs: number
  readonly body: RequestBody | undefined
}

// RFC 9110 sections 6.4.1 and 9.3.2.
function hasContent(method: string, statusCode: number): boolean {
  return method !== 'HEAD' && statusCode !== 204 && statusCode !== 304
}

function isEventStream([contentType = '']: readonly string[] = []): boolean {
  return /^text\/event-stream\b/i.test(contentType)
}

/** Ends an answer so that the client notices. Without a length and without chunks only a reset tells it from a whole answer. */
function breakOff(res: ServerResponse): void {
  if (res.chunkedEncoding || res.hasHeader('Content-Length')) res.destroy()
  else res.socket?.resetAndDestroy()
}

function unauthorized(): HttpError {
  // 401 would tell the page that nobody is signed in, and it would start a login again and again.
  const description = 'The API did not accept the token of your session.'
  return new HttpError({ status: 502, error: 'upstream_unauthorized', description })
}

function failure(kind: FailureKind, cause: unknown): HttpError {
  const [status, description] = FAILURES[kind]
  return new HttpError({ status, error: `upstream_${kind}`, description, cause })
}

const FAILURES: Readonly<Record<FailureKind, readonly [status: number, description: string]>> = {
  unreachable: [502, 'The API could not be reached.'],
  unusable: [502, 'The API gave an answer that could not be used.'],
  timeout: [504, 'The API did not answer in time.']
}

/** The connection ends with this answer, because the rest of the body would have to be read to use it again. */
export function tooLarge(maxBodyBytes: number): HttpError {
  const description = `The body of this request is longer than ${maxBodyBytes} bytes.`
  return new HttpError({ status: 413, error: 'invalid_request', description, headers: { Connection: 'close' } })
}
