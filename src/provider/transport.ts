/**
 * Sends HTTP requests to the identity provider with the package got. An error of got contains the whole request with
 * its credentials. This file therefore replaces the error with a `ProviderError`, which contains the endpoint but no
 * secret.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Agents, Got } from 'got'
import { afterLimit } from '../base/clock.js'
import { errorCode } from '../base/error-code.js'
import { parseJson } from '../base/json.js'
import { type Metrics, noMetrics, type ResponseLabels } from '../base/metrics.js'
import { inSpan, type Tracing } from '../base/tracing.js'
import { outboundProxy } from '../config/outbound-proxy.js'
import { createAgents, type ProxyFor } from './agents.js'
import { type Endpoint, ProviderError } from './errors.js'
import { createQueue, type Queue, QueueFullError, type QueueLimits, type QueueOptions } from './queue.js'
import { isAboutClient } from './refusal.js'

export interface TransportRequest {
  readonly endpoint: Endpoint
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /**
   * The form of a POST request, which is sent as application/x-www-form-urlencoded. If undefined, the request is a GET.
   */
  readonly form?: Readonly<Record<string, string>>
  /** The time limit in milliseconds. The default is `timeoutMs` of `createTransport`. */
  readonly timeoutMs?: number | undefined
  /** True if a failed GET must not be repeated. */
  readonly isSentOnce?: true
  /** True if an open connection must not be used, because the provider may have closed all of them. */
  readonly onNewConnection?: boolean
}

export interface TransportResponse {
  readonly status: number
  /** The parsed JSON, or undefined if the body is not JSON. */
  readonly json: unknown
  /** The body, if it is a JWT (`application/jwt`). */
  readonly jwt?: string
  readonly retryAfterSeconds: number | undefined
  /** The value of the `Date` header, in milliseconds since the epoch. */
  readonly date: number | undefined
  /** The value of the `Location` header. Redirects are not followed. */
  readonly location: string | undefined
  /** The values of the `Set-Cookie` headers. */
  readonly setCookies: readonly string[]
  readonly durationMs: number
}

export interface TransportOptions {
  readonly idleSocketMs?: number
  readonly limits?: QueueLimits
  readonly proxyFor?: ProxyFor
  /** Records the outcome and the duration of each call. */
  readonly metrics?: Pick<Metrics, 'providerResponded' | 'watchQueue'>
  /** Creates a span for each call. */
  readonly tracing?: Tracing | undefined
}

export interface Transport {
  /**
   * Waits in the queue of this name until a slot is free, and returns a function that frees the slot. Slots limit the number of calls
   * in progress. Calls in different queues do not delay each other.
   * @throws ProviderError if the queue is full, or if no slot becomes free within the time limit
   */
  enterQueue(name: string, endpoint: Endpoint, options?: QueueOptions): Promise<() => void>
  /**
   * Sends a request. Every request except a token request first waits for a slot in the queue of its endpoint, and the waiting time
   * counts toward its time limit. For a token request, the caller must enter a queue before this call. Returns the response,
   * whatever its status is. Repeats a GET request once if the connection fails or the status is 500 or above, unless it has
   * `isSentOnce`.
   * @throws ProviderError if there is no complete response
   */
  call(request: TransportRequest): Promise<TransportResponse>
  /** Closes all connections. */
  close(): void
}

const MAX_RESPONSE_BYTES = 1024 * 1024
// An unused connection is closed after this time, which is shorter than the idle timeout of any provider. If the provider closed
// a connection while this server was sending a single-use token on it, the token could be lost.
const IDLE_SOCKET_MS = 4000
const GET_ATTEMPTS = 2
// The limits of each queue. If a response takes 200 ms, 64 concurrent calls result in 19,000 calls per minute, far more
// than a provider allows for one application.
const LIMITS: QueueLimits = { concurrent: 64, waiting: 1000 }

export function createTransport(timeoutMs: number, options: TransportOptions = {}): Transport {
  const { idleSocketMs = IDLE_SOCKET_MS, limits = LIMITS, proxyFor = outboundProxy } = options
  const { metrics = noMetrics, tracing } = options
  const agents = createAgents(idleSocketMs, timeoutMs, proxyFor)
  let loading: Promise<Got> | undefined
  // The first call imports the package `got`. The import needs 50 ms and 10 MB of memory, so it would slow down the start.
  const client = () => {
    loading ??= import('got').then(({ got }) =>
      got.extend({
        retry: { limit: 0 },
        followRedirect: false,
        throwHttpErrors: false,
        decompress: false,
        headers: { accept: 'application/json', 'user-agent': 'platform-auth-server' }
      })
    )
    return loading
  }

  async function attempt(request: TransportRequest, signal: AbortSignal): Promise<TransportResponse> {
    const started = performance.now()
    const elapsed = () => Math.round(performance.now() - started)
    const got = await client()
    try {
      const agent = await agents.for(request.url, request.onNewConnection)
      const { statusCode = 0, headers, body } = await exchange(got, request, agent, signal)
      return {
        status: statusCode,
        json: parseJson(body),
        ...(/^application\/jwt\s*(?:;|$)/i.test(headers['content-type'] ?? '') && { jwt: body.trim() }),
        retryAfterSeconds: waitOf(statusCode, headers, Date.now()),
        date: timeOf(headers.date),
        location: headers.location,
        setCookies: headers['set-cookie'] ?? [],
        durationMs: elapsed()
      }
    } catch (error) {
      const durationMs = elapsed()
      if (error instanceof ResponseTooLargeError) {
        throw new ProviderError(request.endpoint, 'invalid_response', 'the response was larger than 1 MiB', {
          durationMs
        })
      }
      if (signal.aborted) {
        throw new ProviderError(request.endpoint, 'timeout', 'no complete response in time', { durationMs })
      }
      // Node's error code (ECONNREFUSED, CERT_HAS_EXPIRED, …) is logged. The message is not logged, because it may
      // quote the request.
      const code = errorCode(error)
      const detail = `connection failed (${code ?? 'unknown reason'})`
      throw new ProviderError(request.endpoint, 'unreachable', detail, { durationMs, code })
    }
  }

  const queues = new Map<string, Queue>()

  function addQueue(name: string): Queue {
    const queue = createQueue(limits)
    queues.set(name, queue)
    metrics.watchQueue(name.replaceAll(' ', '_'), queue.length)
    return queue
  }

  async function enterQueue(name: string, endpoint: Endpoint, options: QueueOptions, waitLimit: () => AbortSignal) {
    const queue = queues.get(name) ?? addQueue(name)
    const started = performance.now()
    try {
      return await queue.enter(waitLimit, options)
    } catch (error) {
      if (error instanceof QueueFullError) {
        throw new ProviderError(
          endpoint,
          'queue_full',
          'too many calls were already waiting, so this call was not sent'
        )
      }
      const durationMs = Math.round(performance.now() - started)
      throw new ProviderError(endpoint, 'timeout', 'the call waited in the queue for too long', { durationMs })
    }
  }

  async function sendWithRetry(request: TransportRequest, signal: AbortSignal): Promise<TransportResponse> {
    // A POST request is never repeated, because the provider may have received the first request, and a code or refresh
    // token may be used only once.
    let attemptsLeft = request.form || request.isSentOnce ? 1 : GET_ATTEMPTS
    for (;;) {
      attemptsLeft--
      try {
        const response = await attempt(request, signal)
        if (attemptsLeft === 0 || response.status < 500) return response
      } catch (error) {
        if (attemptsLeft === 0 || !(error instanceof ProviderError) || error.problem !== 'unreachable') throw error
      }
    }
  }

  async function send(request: TransportRequest): Promise<TransportResponse> {
    const { endpoint } = request
    const record = startRecord(endpoint)
    const abort = new AbortController()
    // A response that arrived in time may contain the only copy of a new token, so Node gets time to read the response.
    const cancelTimer = afterLimit(request.timeoutMs ?? timeoutMs, () => abort.abort())
    let release: (() => void) | undefined
    try {
      if (endpoint !== 'token') release = await enterQueue(endpoint, endpoint, {}, () => abort.signal)
      const response = await sendWithRetry(request, abort.signal)
      record({ code: response.status, ...(isAboutClient(response.json) && { error: 'client_rejected' }) })
      return response
    } catch (error) {
      record({ error: errorOf(error) })
      throw error
    } finally {
      cancelTimer()
      release?.()
    }
  }

  // The query of the URL and the form are not recorded, because they may contain secrets. The provider gets no trace
  // headers, because it often belongs to another organisation.
  function sendInSpan(tracing: Tracing, request: TransportRequest): Promise<TransportResponse> {
    const { endpoint, url, form } = request
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    const attributes = {
      'http.request.method': form ? 'POST' : 'GET',
      'server.address': parsed?.hostname,
      'url.full': parsed && `${parsed.origin}${parsed.pathname}`,
      'platform_auth.endpoint': endpoint
    }
    return inSpan(tracing, `provider ${endpoint}`, attributes, async span => {
      const response = await send(request)
      span.set({ 'http.response.status_code': response.status })
      if (response.status >= 400) span.end(String(response.status))
      return response
    })
  }

  function startRecord(endpoint: Endpoint): (response: ResponseLabels) => void {
    const started = performance.now()
    return response => metrics.providerResponded(endpoint, response, (performance.now() - started) / 1000)
  }

  return {
    async enterQueue(name, endpoint, options = {}) {
      const record = startRecord(endpoint)
      try {
        return await enterQueue(name, endpoint, options, () => AbortSignal.timeout(timeoutMs))
      } catch (error) {
        // A request without a slot is not sent, but the metrics count it as a call.
        record({ error: errorOf(error) })
        throw error
      }
    },
    call: request => (tracing ? sendInSpan(tracing, request) : send(request)),
    close: () => agents.destroy()
  }
}

class ResponseTooLargeError extends Error {}

type ReceivedResponse = Pick<IncomingMessage, 'statusCode' | 'headers'> & { readonly body: string }

/**
 * Sends a request and receives the whole response. This function reads got's stream and listens to the signal itself,
 * because got's promise with the option `signal` needs about one sixth more CPU time.
 */
function exchange(got: Got, request: TransportRequest, agent: Agents, signal: AbortSignal): Promise<ReceivedResponse> {
  const { url, headers, form } = request
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const stream = got.stream(url, {
      method: form ? 'POST' : 'GET',
      agent,
      ...(headers && { headers: { ...headers } }),
      ...(form && { form: { ...form } })
    })
    const abort = () => stream.destroy()
    let response: Partial<IncomingMessage> = {}
    const chunks: Buffer[] = []
    let bytes = 0
    stream.on('response', received => {
      response = received
    })
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes <= MAX_RESPONSE_BYTES) return
      reject(new ResponseTooLargeError())
      stream.destroy()
    })
    stream.on('end', () => {
      const { statusCode, headers = {} } = response
      resolve({ statusCode, headers, body: Buffer.concat(chunks).toString() })
    })
    stream.on('error', reject)
    stream.on('close', () => {
      signal.removeEventListener('abort', abort)
      // An aborted stream emits neither `error` nor `end`, so the promise is rejected here. After one of these events,
      // this call has no effect.
      reject(new Error('aborted'))
    })
    signal.addEventListener('abort', abort, { once: true })
  })
}

function errorOf(error: unknown): string {
  return error instanceof ProviderError ? error.problem : 'other'
}

const MAX_WAIT_SECONDS = 60
// RFC 9110 section 5.6.7. Date.parse would also read `-1` as a year.
const HTTP_DATE = /^[A-Z][a-z]{2,8},? /

/**
 * Returns the seconds after which the request may be repeated. `Retry-After` is a number or a date (RFC 9110 section 10.2.3), and
 * Okta sends `X-Rate-Limit-Reset`, in seconds since the epoch, with status 429. A time is compared with the `Date` of the
 * response, so a wrong clock of this machine makes no difference, and the wait is at most a minute.
 */
export function waitOf(status: number, headers: IncomingHttpHeaders, now: number): number | undefined {
  const retryAfter = headers['retry-after']
  if (retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter)) return Number(retryAfter)
  const reset = headers['x-rate-limit-reset']
  const resetAt =
    status === 429 && typeof reset === 'string' && /^\d{1,11}$/.test(reset) ? Number(reset) * 1000 : undefined
  const until = (HTTP_DATE.test(retryAfter ?? '') ? timeOf(retryAfter) : undefined) ?? resetAt
  if (until === undefined) return undefined
  const seconds = Math.ceil((until - (timeOf(headers.date) ?? now)) / 1000)
  return Math.min(MAX_WAIT_SECONDS, Math.max(0, seconds))
}

function timeOf(date: string | undefined): number | undefined {
  const time = Date.parse(date ?? '')
  return Number.isNaN(time) ? undefined : time
}
