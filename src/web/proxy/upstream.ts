/**
 * Sends the requests of the API proxy to the upstreams with the package undici. There is one connection pool for each
 * host. The receiver gets each chunk of a response when the chunk arrives, and can pause the response.
 */

import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { buildConnector, type Dispatcher, Pool } from 'undici'
import { connectOptions } from '../../base/connect-options.js'
import { KnownError } from '../../base/failure-reasons.js'
import { openTunnel, type ProxyFor } from '../../provider/outbound.js'
import type { RequestBody } from './request.js'

export interface UpstreamRequest {
  /** The scheme, host and port. */
  readonly origin: string
  /** The path and query, which are sent unchanged. */
  readonly target: string
  readonly method: string
  /**
   * A list in which each header name, in lower case, is followed by its value. It must not contain Connection, Host,
   * Content-Length and Transfer-Encoding.
   */
  readonly headers: readonly string[]
  readonly body: UpstreamBody | undefined
  /** The request fails if the upstream neither receives nor sends data for this many milliseconds. */
  readonly silenceMs: number
}

interface UpstreamBody extends Pick<RequestBody, 'isWaitingForClient'> {
  readonly stream: Readable
  /** The Content-Length. If undefined, the body is sent with Transfer-Encoding: chunked. */
  readonly length: number | undefined
}

/** The functions that receive the response. None of them is called after `ended` or `failed`. */
interface Receiver {
  /** Receives the status and the headers. */
  responded(statusCode: number, rawHeaders: readonly Buffer[]): void
  /** Receives a part of the body. If it returns false, the response is paused until `resume` is called. */
  received(chunk: Buffer): boolean
  /** The response is complete. */
  ended(): void
  /** The request failed, or the response is incomplete. */
  failed(error: UpstreamError): void
}

/** Controls a request that was sent. */
export interface Exchange {
  /** Continues a paused response. */
  resume(): void
  /**
   * Reports that data was transferred, for example a part of the request body. This restarts the time limit `silenceMs`.
   */
  progressed(): void
  /** Aborts the request. The receiver is not called again. */
  abort(): void
}

export type FailureKind =
  /** The connection could not be opened, for example because the certificate is not trusted. */
  | 'unreachable'
  /** Opening the connection took too long, or no data was transferred for too long. */
  | 'timeout'
  /** The response is incomplete or is not valid HTTP. */
  | 'invalid_response'

export class UpstreamError extends KnownError {
  override readonly name = 'UpstreamError'
  override readonly reason: FailureKind

  constructor(reason: FailureKind, cause: unknown) {
    super(`the request to the upstream failed: ${reason}`, { cause })
    this.reason = reason
  }
}

export type Upstreams = ReturnType<typeof createUpstreams>

export interface UpstreamOptions {
  /** The time limit for name resolution, TCP and TLS together, in milliseconds. A tunnel has the same limit again. */
  readonly connectTimeoutMs: number
  /**
   * The maximum number of connections to one host. If all of them are in use, a request waits until a connection is
   * free.
   */
  readonly connectionsPerHost: number
  /** Returns the company's HTTP proxy for an https origin, or undefined for a direct connection. */
  readonly proxyFor?: ProxyFor
  /** The trusted certificate authorities. They replace the authorities that Node trusts by default. */
  readonly ca?: string
}

// The time limits of undici are disabled, and `silenceMs` is used instead. With its own limits, undici would not end an
// upload that stalls, but would end a long upload even while data is being transferred.
const NO_TIMEOUTS = { headersTimeout: 0, bodyTimeout: 0 }

export function createUpstreams(options: UpstreamOptions) {
  const { connectTimeoutMs, connectionsPerHost, proxyFor = () => undefined, ca } = options
  const pools = new Map<string, Pool>()
  const trusted = ca !== undefined && { ca }
  const connectDirectly = buildConnector({ timeout: connectTimeoutMs, ...connectOptions(connectTimeoutMs), ...trusted })
  const connect = trackingResponses(tunnelling(connectDirectly, proxyFor, connectTimeoutMs))

  function createPool(origin: string, connections: number): Pool {
    return new Pool(origin, { connect, connections, ...NO_TIMEOUTS })
  }

  function poolOf(origin: string): Pool {
    const pool = pools.get(origin) ?? createPool(origin, connectionsPerHost)
    pools.set(origin, pool)
    return pool
  }

  /**
   * Returns a pool with a single new connection. The upstream may have closed all idle connections of the other pool.
   */
  function freshPool(origin: string): Pool {
    return new Pool(origin, { connect, connections: 1, ...NO_TIMEOUTS })
  }

  return {
    send: (request: UpstreamRequest, receiver: Receiver) =>
      send(poolOf(request.origin), () => freshPool(request.origin), request, receiver),
    /** Closes all connections immediately. */
    async close() {
      await Promise.all([...pools.values()].map(pool => pool.destroy()))
    }
  }
}

/**
 * Returns a connector that opens a tunnel for each https origin for which `proxyFor` returns a proxy. undici's own agent for proxies
 * decides differently from the client of the identity provider, and would send requests to `http://backend` through the proxy.
 */
function tunnelling(
  connect: buildConnector.connector,
  proxyFor: ProxyFor,
  timeoutMs: number
): buildConnector.connector {
  return function connectThroughProxy(options, callback) {
    const { protocol, host = options.hostname } = options
    const origin = `https://${host}`
    const proxy = protocol === 'https:' ? proxyFor(origin) : undefined
    if (proxy === undefined) return connect(options, callback)
    openTunnel(proxy, origin, timeoutMs).then(
      httpSocket => connect({ ...options, httpSocket }, callback),
      (error: Error) => callback(error, null)
    )
    return undefined
  }
}

function send(pool: Pool, freshPool: () => Pool, request: UpstreamRequest, receiver: Receiver): Exchange {
  const { method, body, silenceMs } = request
  const mayRetry = (method === 'GET' || method === 'HEAD') && body === undefined
  let attempt = 0
  let connection: Dispatcher.DispatchController | undefined
  let isDone = false
  let isPaused = false
  let fresh: Pool | undefined
  const silence = createSilenceLimit(silenceMs, {
    isExcused: () => isPaused || body?.isWaitingForClient() === true,
    onExceeded(reason) {
      const controller = connection
      fail('timeout', reason)
      controller?.abort(reason)
    }
  })

  function finish() {
    isDone = true
    silence.stop()
    void fresh?.close()
    connection = undefined
  }

  function fail(kind: FailureKind, cause: unknown) {
    if (isDone) return
    finish()
    receiver.failed(new UpstreamError(kind, cause))
  }

  // Responses with status 204 or 304 have no content, so they end after the headers. Without this function, undici
  // would wait for the content if a 304 response has a Content-Length (RFC 9110 section 8.6), and would report an
  // incomplete response.
  function end() {
    if (isDone) return
    finish()
    receiver.ended()
  }

  function dispatch(through: Pool) {
    attempt += 1
    let hasResponseStarted = false
    let hasRequestStarted = false
    const isLastAttempt = attempt > 1 || !mayRetry
    through.dispatch(optionsOf(request), {
      onRequestStart(controller) {
        hasRequestStarted = true
        connection = controller
        if (isDone) controller.abort(new Error('the client has disconnected'))
        else silence.start()
      },
      onResponseStarted() {
        hasResponseStarted = true
      },
      onResponseStart(controller, statusCode) {
        // A proxy may discard responses with a status below 200 (RFC 9110 section 15.2).
        if (isDone || statusCode < 200) return
        silence.progressed()
        receiver.responded(statusCode, controller.rawHeaders as Buffer[])
        if (isDone) return
        if (statusCode === 204 || statusCode === 304) end()
      },
      onResponseData(controller, chunk) {
        if (isDone) return
        silence.progressed()
        if (receiver.received(chunk)) return
        isPaused = true
        controller.pause()
      },
      onResponseEnd: end,
      onResponseError(_controller, error) {
        if (isDone) return
        silence.stop()
        if (!isLastAttempt && hasRequestStarted && !hasResponseStarted && errorsAfterResponse.has(error)) {
          fresh = freshPool()
          dispatch(fresh)
        } else fail(kindOf(error, hasRequestStarted), error)
      }
    })
  }

  dispatch(pool)
  return {
    resume() {
      if (isDone) return
      isPaused = false
      silence.progressed()
      connection?.resume()
    },
    progressed: silence.progressed,
    abort() {
      if (isDone) return
      const controller = connection
      finish()
      controller?.abort(new Error('the request was aborted'))
    }
  }
}

interface SilenceHandlers {
  /** True if the upstream may be silent now, because it waits for the client. */
  isExcused(): boolean
  onExceeded(reason: Error): void
}

/** Measures the time for which the upstream neither receives nor sends data. */
function createSilenceLimit(limitMs: number, { isExcused, onExceeded }: SilenceHandlers) {
  let timer: NodeJS.Timeout | undefined
  let progressCount = 0

  function check() {
    const [checked, before] = [timer, progressCount]
    // If this process was suspended, data may have arrived that Node has not read yet. Node reads this data before it
    // runs the callback of setImmediate.
    setImmediate(() => {
      if (timer === undefined || timer !== checked) return
      if (progressCount !== before || isExcused()) timer.refresh()
      else onExceeded(new Error(`the upstream made no progress for ${limitMs} ms`))
    })
  }

  return {
    start() {
      timer = setTimeout(check, limitMs)
    },
    progressed() {
      progressCount += 1
      timer?.refresh()
    },
    stop() {
      clearTimeout(timer)
      timer = undefined
    }
  }
}

function optionsOf({ target, method, headers, body }: UpstreamRequest): Dispatcher.DispatchOptions {
  const framed = body?.length === undefined ? headers : [...headers, 'content-length', String(body.length)]
  return { path: target, method, headers: framed as string[], ...(body && { body: body.stream }) }
}

function kindOf(error: Error, hasRequestStarted: boolean): FailureKind {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') return 'timeout'
  return hasRequestStarted ? 'invalid_response' : 'unreachable'
}

// Errors of reused connections, on which an earlier response has arrived. An upstream may close such an idle connection while
// this server is sending the next request. A GET or HEAD request is therefore sent again only after such an error (RFC 9110
// section 9.2.2).
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
  // A connection was used before if it has received data. `bytesRead` does not count the bytes of the TLS handshake.
  socket.prependListener('error', (error: Error) => {
    if (socket.bytesRead > 0) errorsAfterResponse.add(error)
  })
}
