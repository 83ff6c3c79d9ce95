/**
 * Requests to the upstreams of the API proxy, carried by undici, with one pool of connections for each host. Nothing is buffered:
 * pieces of an answer go to the receiver as they come, and a receiver that is full stops the reading.
 */
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { buildConnector, type Dispatcher, Pool } from 'undici'

export interface UpstreamRequest {
  /** Scheme, host and port. */
  readonly origin: string
  /** Path and query, sent byte for byte. */
  readonly target: string
  readonly method: string
  /** Names in lower case and values in turn. Connection, Host and framing are not among them. */
  readonly headers: readonly string[]
  readonly body: UpstreamBody | undefined
  /** Milliseconds without a sign of life, before or within the answer, after which the request fails. */
  readonly silenceMs: number
}

export interface UpstreamBody {
  readonly stream: Readable
  /** Content-Length, if the client sent one. Without it the body is chunked. */
  readonly length: number | undefined
  /** True while the silence is the client's and not the upstream's. */
  isWaitingForClient(): boolean
}

/** Told what comes of a request. After `ended` or `failed` nothing more comes. */
export interface Receiver {
  answered(statusCode: number, rawHeaders: readonly Buffer[]): void
  /** Returns false to get no more until `resume`. */
  received(chunk: Buffer): boolean
  ended(): void
  failed(error: UpstreamFailure): void
}

export interface Exchange {
  /** Lets more of the answer come. */
  resume(): void
  /** Something moved that the upstream is not to blame for. Its silence begins anew. */
  progressed(): void
  /** Ends the request at once. The receiver hears nothing more. */
  abort(): void
}

export type FailureKind =
  /** No connection, or none that can be trusted. */
  | 'unreachable'
  /** Not connected, or silent, for too long. */
  | 'timeout'
  /** An answer that broke off or is no HTTP. */
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
  /** Cuts every connection. */
  close(): Promise<void>
}

export interface UpstreamOptions {
  /** Milliseconds for name resolution, TCP and TLS together. */
  readonly connectTimeoutMs: number
  /** Certificate authorities to trust in place of Node's. */
  readonly ca?: string
}

export function createUpstreams({ connectTimeoutMs, ca }: UpstreamOptions): Upstreams {
  const pools = new Map<string, Pool>()
  const connect = rememberingAnswers(buildConnector({ timeout: connectTimeoutMs, ...(ca !== undefined && { ca }) }))

  function poolOf(origin: string): Pool {
    let pool = pools.get(origin)
    if (!pool) {
      // undici's own time limits are off: a stalled upload does not end by them, and an upload that moves does.
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
  let signs = 0

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

  // These answers end with their head. undici would wait in vain for the content of a 304 that has a Content-Length, which it may
  // have (RFC 9110 section 8.6), and report it as cut.
  function end() {
    if (isDone) return
    finish()
    receiver.ended()
  }

  function heard() {
    signs += 1
    silence?.refresh()
  }

  function checkSilence() {
    const before = signs
    // After a pause of this process the next sign may lie in the socket unread. What is there by now is read first.
    setImmediate(() => {
      if (isDone) return
      if (signs !== before || isPaused || body?.isWaitingForClient()) {
        silence?.refresh()
        return
      }
      const controller = connection
      const reason = new Error(`nothing came for ${silenceMs} ms`)
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
        if (isDone) controller.abort(new Error('the client has left'))
        else silence = setTimeout(checkSilence, silenceMs)
      },
      onResponseStarted() {
        hasBegun = true
      },
      onResponseStart(controller, statusCode) {
        // Informational answers are not passed on (RFC 9110 section 15.2).
        if (isDone || statusCode < 200) return
        heard()
        receiver.answered(statusCode, controller.rawHeaders as Buffer[])
        if (isDone) return
        if (statusCode === 204 || statusCode === 304) end()
      },
      onResponseData(controller, chunk) {
        if (isDone) return
        heard()
        if (receiver.received(chunk)) return
        isPaused = true
        controller.pause()
      },
      onResponseEnd: end,
      onResponseError(_controller, error) {
        if (isDone) return
        clearTimeout(silence)
        if (!isLastAttempt && hasStarted && !hasBegun && errorsAfterAnAnswer.has(error)) dispatch()
        else fail(kindOf(error, hasStarted), error)
      }
    })
  }

  dispatch()
  return {
    resume() {
      if (isDone) return
      isPaused = false
      heard()
      connection?.resume()
    },
    progressed: heard,
    abort() {
      if (isDone) return
      const controller = connection
      finish()
      controller?.abort(new Error('the request was given up'))
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

// Errors of connections on which an answer had come before. An upstream may close a kept connection in the moment we send on it, and
// only then may the request be sent again (RFC 9110 section 9.2.2).
const errorsAfterAnAnswer = new WeakSet<Error>()

function rememberingAnswers(connect: buildConnector.connector): buildConnector.connector {
  return function connectAndRemember(options, callback) {
    connect(options, (...result) => {
      const [, socket] = result
      if (socket) rememberAnswers(socket)
      callback(...result)
    })
  }
}

function rememberAnswers(socket: Socket): void {
  // Over TLS too, these are the bytes of HTTP alone.
  socket.prependListener('error', (error: Error) => {
    if (socket.bytesRead > 0) errorsAfterAnAnswer.add(error)
  })
}
