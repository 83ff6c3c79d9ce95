/**
 * Sends the requests of the API proxy to the upstreams with undici. There is one connection pool for each host. Responses are
 * not buffered. Each chunk goes to the receiver when it arrives, and the receiver can pause the upstream.
 */
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { buildConnector, type Dispatcher, Pool } from 'undici'

export interface UpstreamRequest {
  /** The scheme, host and port. */
  readonly origin: string
  /** The path and query, which are sent unchanged. */
  readonly target: string
  readonly method: string
  /** Names in lower case and values alternate. There are no Connection, Host, Content-Length or Transfer-Encoding headers. */
  readonly headers: readonly string[]
  readonly body: UpstreamBody | undefined
  /** The request fails if the upstream makes no progress for this many milliseconds. */
  readonly silenceMs: number
}

export interface UpstreamBody {
  readonly stream: Readable
  /** The Content-Length, if the client sent one. Otherwise the body is sent chunked. */
  readonly length: number | undefined
  /** True if the next bytes must come from the client, so the upstream is not silent. */
  isWaitingForClient(): boolean
}

/** Receives the response. No method is called after `ended` or `failed`. */
export interface Receiver {
  answered(statusCode: number, rawHeaders: readonly Buffer[]): void
  /** Returns false to pause the response until `resume` is called. */
  received(chunk: Buffer): boolean
  ended(): void
  failed(error: UpstreamFailure): void
}

export interface Exchange {
  /** Continues a paused response. */
  resume(): void
  /** Reports progress, for example of the upload. The silence time limit starts again. */
  progressed(): void
  /** Aborts the request. The receiver is not called again. */
  abort(): void
}

export type FailureKind =
  /** There is no connection, or its certificate is not trusted. */
  | 'unreachable'
  /** The connection took too long, or the upstream was silent for too long. */
  | 'timeout'
  /** The response is incomplete or is not valid HTTP. */
  | 'unusable'

export class UpstreamFailure extends Error {
  override readonly name = 'UpstreamFailure'
  readonly kind: FailureKind

  constructor(kind: FailureKind, cause: unknown) {
    super(`the upstream is ${kind}`, { cause })
    this.kind = kind
  }
}

export interface Upstreams {
  send(request: UpstreamRequest, receiver: Receiver): Exchange
  /** Closes all connections at once. */
  close(): Promise<void>
}

export interface UpstreamOptions {
  /** The time limit for name resolution, TCP and TLS together, in milliseconds. */
  readonly connectTimeoutMs: number
  /** Trusted certificate authorities that replace Node's. */
  readonly ca?: string
}

export function createUpstreams({ connectTimeoutMs, ca }: UpstreamOptions): Upstreams {
  const pools = new Map<string, Pool>()
  const connect = trackingResponses(buildConnector({ timeout: connectTimeoutMs, ...(ca !== undefined && { ca }) }))

  function poolOf(origin: string): Pool {
    let pool = pools.get(origin)
    if (!pool) {
      // undici's time limits are disabled, because they do not end a stalled upload, but they do end a long upload that makes
      // progress.
      pool = new Pool(origin, { connect, headersTimeout: 0, bodyTimeout: 0 })
      pools.set(origin, pool)
    }
    return pool
  }

  return {
    send: (request, receiver) => send(poolOf(request.origin), request, receiver),
    async close() {
      await Promise.all([...pools.values()].map(pool => pool.destroy()))
    }
  }
}

function send(pool: Pool, request: UpstreamRequest, receiver: Receiver): Exchange {
  const { method, body, silenceMs } = request
  const mayRetry = (method === 'GET' || method === 'HEAD') && body === undefined
  let attempt = 0
  let connection: Dispatcher.DispatchController | undefined
  let silence: NodeJS.Timeout | undefined
  let isDone = false
  let isPaused = false
  let progressCount = 0

  function finish() {
    isDone = true
    clearTimeout(silence)
    connection = undefined
  }

  function fail(kind: FailureKind, cause: unknown) {
    if (isDone) return
    finish()
    receiver.failed(new UpstreamFailure(kind, cause))
  }

  // Also ends a 204 or 304 response, which has no content. A 304 may have a Content-Length (RFC 9110 section 8.6). undici would
  // wait for this content and then report an incomplete response.
  function end() {
    if (isDone) return
    finish()
    receiver.ended()
  }

  function recordProgress() {
    progressCount += 1
    silence?.refresh()
  }

  function checkSilence() {
    const before = progressCount
    // If this process was paused, data may be in the socket's buffer but still unread. Node reads it before setImmediate runs.
    setImmediate(() => {
      if (isDone) return
      if (progressCount !== before || isPaused || body?.isWaitingForClient()) {
        silence?.refresh()
        return
      }
      const controller = connection
      const reason = new Error(`the upstream made no progress for ${silenceMs} ms`)
      fail('timeout', reason)
      controller?.abort(reason)
    })
  }

  function dispatch() {
    attempt += 1
    let hasBegun = false
    let hasStarted = false
    const isLastAttempt = attempt > 1 || !mayRetry
    pool.dispatch(optionsOf(request), {
      onRequestStart(controller) {
        hasStarted = true
        connection = controller
        if (isDone) controller.abort(new Error('the client has disconnected'))
        else silence = setTimeout(checkSilence, silenceMs)
      },
      onResponseStarted() {
        hasBegun = true
      },
      onResponseStart(controller, statusCode) {
        // Informational responses are not forwarded (RFC 9110 section 15.2).
        if (isDone || statusCode < 200) return
        recordProgress()
        receiver.answered(statusCode, controller.rawHeaders as Buffer[])
        if (isDone) return
        if (statusCode === 204 || statusCode === 304) end()
      },
      onResponseData(controller, chunk) {
        if (isDone) return
        recordProgress()
        if (receiver.received(chunk)) return
        isPaused = true
        controller.pause()
      },
      onResponseEnd: end,
      onResponseError(_controller, error) {
        if (isDone) return
        clearTimeout(silence)
        if (!isLastAttempt && hasStarted && !hasBegun && errorsAfterResponse.has(error)) dispatch()
        else fail(kindOf(error, hasStarted), error)
      }
    })
  }

  dispatch()
  return {
    resume() {
      if (isDone) return
      isPaused = false
      recordProgress()
      connection?.resume()
    },
    progressed: recordProgress,
    abort() {
      if (isDone) return
      const controller = connection
      finish()
      controller?.abort(new Error('the request was aborted'))
    }
  }
}

function optionsOf({ target, method, headers, body }: UpstreamRequest): Dispatcher.DispatchOptions {
  const framed = body?.length === undefined ? headers : [...headers, 'content-length', String(body.length)]
  return { path: target, method, headers: framed as string[], ...(body && { body: body.stream }) }
}

function kindOf(error: Error, hasStarted: boolean): FailureKind {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') return 'timeout'
  return hasStarted ? 'unusable' : 'unreachable'
}

// The errors of connections that had already delivered a response. An upstream may close an idle connection just as we send a
// request on it. Only in this case is the request repeated (RFC 9110 section 9.2.2).
const errorsAfterResponse = new WeakSet<Error>()

function trackingResponses(connect: buildConnector.connector): buildConnector.connector {
  return function connectAndTrack(options, callback) {
    connect(options, (...result) => {
      const [, socket] = result
      if (socket) trackResponses(socket)
      callback(...result)
    })
  }
}

function trackResponses(socket: Socket): void {
  // With TLS, `bytesRead` also counts only the bytes of HTTP.
  socket.prependListener('error', (error: Error) => {
    if (socket.bytesRead > 0) errorsAfterResponse.add(error)
  })
}
