/**
 * Sends the requests of the API proxy to the upstreams. The receiver gets each chunk of a response when the chunk arrives, and can
 * pause the response.
 */
import type { Readable } from 'node:stream'
import { buildConnector, type Dispatcher } from 'undici'
import { connectOptions } from '../../base/connect-options.js'
import { KnownError } from '../../base/failure-reasons.js'
import { openTunnel, type ProxyFor } from '../../provider/outbound.js'
import type { RequestBody } from './request-body.js'
import { type Connections, createConnections, mayBeUnread, requestStarts } from './upstream-connections.js'

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
  /** Called about twice a second while the response has begun and has not ended. */
  lasts?(): void
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
  /** Returns the company's HTTP proxy for an https origin, or undefined for a direct connection. */
  readonly proxyFor?: ProxyFor
  /** The trusted certificate authorities. They replace the authorities that Node trusts by default. */
  readonly ca?: string
}

// The time after which a request in progress is checked again, in milliseconds.
const CHECK_INTERVAL_MS = 500

export function createUpstreams(options: UpstreamOptions) {
  const hosts = new Map<string, Connections>()
  const connect = createConnector(options)
  let timer: NodeJS.Timeout | undefined

  function connectionsTo(origin: string): Connections {
    timer ??= setInterval(checkAll, CHECK_INTERVAL_MS).unref()
    const connections = hosts.get(origin) ?? createConnections(origin, connect)
    hosts.set(origin, connections)
    return connections
  }

  // One timer for all requests costs less than one for each. It runs only while there are requests.
  function checkAll(): void {
    const busy = [...hosts.values()].flatMap(({ all }) => [...all].filter(({ isBusy }) => isBusy))
    for (const { check } of busy) check?.()
    if (busy.length > 0) return
    clearInterval(timer)
    timer = undefined
  }

  return {
    send: (request: UpstreamRequest, receiver: Receiver) => send(request, receiver, connectionsTo(request.origin)),
    /** Closes all connections immediately. */
    async close() {
      await Promise.all([...hosts.values()].map(({ close }) => close()))
    }
  }
}

/**
 * Returns a connector that opens a tunnel for each https origin for which `proxyFor` returns a proxy. undici's own agent for proxies
 * decides differently from the client of the identity provider, and would send requests to `http://backend` through the proxy.
 */
export function createConnector(options: UpstreamOptions): buildConnector.connector {
  const { connectTimeoutMs: timeout, proxyFor = () => undefined, ca } = options
  const connect = buildConnector({ timeout, ...connectOptions(timeout), ...(ca !== undefined && { ca }) })
  return function connectThroughProxy(options, callback) {
    const { protocol, host = options.hostname } = options
    const origin = `https://${host}`
    const proxy = protocol === 'https:' ? proxyFor(origin) : undefined
    if (proxy === undefined) return connect(options, callback)
    openTunnel(proxy, origin, timeout).then(
      httpSocket => connect({ ...options, httpSocket }, callback),
      (error: Error) => callback(error, null)
    )
    return undefined
  }
}

function send(request: UpstreamRequest, receiver: Receiver, connections: Connections): Exchange {
  const { method, body, silenceMs } = request
  let connection = connections.take()
  let mayRetry = (method === 'GET' || method === 'HEAD') && body === undefined
  // undici calls `onConnect` when it is about to send the request, and the functions of `onHeaders` and `onConnect` control it.
  let abortRequest: ((reason: Error) => void) | undefined
  let resumeResponse: (() => void) | undefined
  let isPaused = false
  let isDone = false
  // The number of checks since data was transferred. Time in which this process was suspended does not count.
  let silentChecks = 0

  function check() {
    if (resumeResponse) receiver.lasts?.()
    if (isDone) return
    silentChecks += 1
    if (silentChecks * CHECK_INTERVAL_MS <= silenceMs) return
    // The upstream may be silent while it waits for the client.
    if (isPaused || body?.isWaitingForClient()) silentChecks = 0
    else stop(new Error(`the upstream made no progress for ${silenceMs} ms`), 'timeout')
  }

  function progressed() {
    silentChecks = 0
  }

  function finish() {
    isDone = true
    connection.check = undefined
  }

  function stop(reason: Error, failure?: FailureKind) {
    if (isDone) return
    finish()
    if (failure) receiver.failed(new UpstreamError(failure, reason))
    abortRequest?.(reason)
  }

  // Responses with status 204 or 304 have no content, so they end after the headers. undici would wait for the content if a 304
  // response has a Content-Length (RFC 9110 section 8.6), and would report an incomplete response.
  function end() {
    if (isDone) return
    finish()
    receiver.ended()
  }

  // The handler has the older form of undici 7. For the newer one, undici would convert the headers to an object, which is not needed.
  const handler: Dispatcher.DispatchHandler = {
    onConnect(abort) {
      abortRequest = abort
      if (isDone) return abort(new Error('the client has disconnected'))
      requestStarts(connection)
      connection.check = check
    },
    onHeaders(statusCode, rawHeaders, resume) {
      if (isDone) return true
      // Nobody asked for another protocol, and a gateway in front of this server might take a 101 for the beginning of a tunnel.
      if (statusCode < 200) {
        stop(new Error(`the upstream sent the status ${statusCode}`), 'invalid_response')
        return false
      }
      progressed()
      resumeResponse = resume
      receiver.responded(statusCode, rawHeaders)
      if (statusCode === 204 || statusCode === 304) end()
      return true
    },
    onData(chunk) {
      if (isDone) return true
      progressed()
      isPaused = !receiver.received(chunk)
      return !isPaused
    },
    onComplete: end,
    onError(error) {
      const hasStarted = abortRequest !== undefined
      // undici has not accepted the request, so it does not tell when the connection can be used again.
      if (!hasStarted && connection.isOpen) connections.release(connection)
      if (isDone) return
      // The upstream may close an idle connection while this server is sending the next request on it. Only then, a GET or HEAD
      // request is sent again (RFC 9110 section 9.2.2), on a new connection, because the other idle ones may be closed, too.
      if (hasStarted && mayRetry && mayBeUnread(connection)) {
        mayRetry = false
        abortRequest = undefined
        connection.check = undefined
        progressed()
        connection = connections.open()
        connection.client.dispatch(optionsOf(request), handler)
      } else {
        finish()
        receiver.failed(new UpstreamError(kindOf(error, hasStarted), error))
      }
    }
  }

  connection.client.dispatch(optionsOf(request), handler)
  return {
    resume() {
      if (isDone) return
      isPaused = false
      progressed()
      resumeResponse?.()
    },
    progressed,
    abort: () => stop(new Error('the request was aborted'))
  }
}

function optionsOf({ target, method, headers, body }: UpstreamRequest): Dispatcher.DispatchOptions {
  const framed = body?.length === undefined ? headers : [...headers, 'content-length', String(body.length)]
  return { path: target, method, headers: framed as string[], ...(body && { body: body.stream }) }
}

function kindOf(error: Error, hasStarted: boolean): FailureKind {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'ETIMEDOUT') return 'timeout'
  return hasStarted ? 'invalid_response' : 'unreachable'
}
