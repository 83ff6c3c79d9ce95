/**
 * Sends HTTP requests to the identity provider: limits their number and their time, repeats a failed GET request, and records
 * each call in the metrics and traces.
 */
import { afterLimit, type Clock } from '../base/clock.js'
import { createFairQueue, type FairQueue, QueueError, type QueueLimits, type Requester } from '../base/fair-queue.js'
import { type Metrics, noMetrics, type ResponseLabels } from '../base/metrics.js'
import { inSpan, type Tracing } from '../base/tracing.js'
import { outboundProxy } from '../config/outbound-proxy.js'
import { type CallLimit, createAttempt, type TransportRequest, type TransportResponse } from './attempt.js'
import { isAboutClient } from './meaning.js'
import { createAgents, type ProxyFor } from './outbound.js'
import { type Endpoint, ProviderError } from './provider-error.js'

/** `inProgress` limits the concurrent calls, and `waiting` the urgent callers and the other callers separately. */
type CallLimits = Pick<QueueLimits, 'inProgress' | 'waiting'>

export interface QueueOptions {
  /** Urgent callers have priority over all others. */
  readonly isUrgent?: boolean | undefined
  /** The session and user for whom the call is made. All calls without a requester count as calls for the same user. */
  readonly requester?: Requester | undefined
}

export interface TransportOptions {
  readonly idleSocketMs?: number
  readonly limits?: CallLimits
  readonly proxyFor?: ProxyFor
  /** Measures the time limit of a call. */
  readonly clock?: Pick<Clock, 'after'>
  /** Records the outcome and the duration of each call. */
  readonly metrics?: Metrics
  /** Creates a span for each call. */
  readonly tracing?: Tracing | undefined
}

export type Transport = ReturnType<typeof createTransport>

// An unused connection is closed after this time, which is shorter than the idle timeout of any provider. If the provider closed
// a connection while this server was sending a single-use token on it, the token could be lost.
const IDLE_SOCKET_MS = 4000
// The limits of each queue. If a response takes 200 ms, 64 concurrent calls result in 19,000 calls per minute, far more
// than a provider allows for one application.
const LIMITS: CallLimits = { inProgress: 64, waiting: 1000 }
const NOBODY: Requester = { session: '', user: '' }

export function createTransport(timeoutMs: number, options: TransportOptions = {}) {
  const { idleSocketMs = IDLE_SOCKET_MS, limits = LIMITS, proxyFor = outboundProxy } = options
  const { metrics = noMetrics, tracing, clock } = options
  const agents = createAgents(idleSocketMs, timeoutMs, proxyFor)
  const attempt = createAttempt(agents)
  const enterQueue = createQueues(limits, metrics)

  async function send(request: TransportRequest): Promise<TransportResponse> {
    const { endpoint } = request
    const record = startRecord(endpoint)
    const limit: CallLimit = { isExceeded: false, request: undefined }
    // A response that arrived in time may contain the only copy of a new token, so Node gets time to read the response.
    const limitMs = request.timeoutMs ?? timeoutMs
    const exceed = () => {
      limit.isExceeded = true
      limit.request?.destroy()
    }
    const cancelTimer = afterLimit(limitMs, exceed, clock)
    let release: (() => void) | undefined
    try {
      if (endpoint !== 'token') release = await enterQueue(endpoint, endpoint, {}, limitMs)
      const response = await sendWithRetry(request, limit)
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

  async function sendWithRetry(request: TransportRequest, limit: CallLimit): Promise<TransportResponse> {
    // A POST request is never repeated, because the provider may have received the first request, and a code or refresh
    // token may be used only once.
    if (request.form) return attempt(request, limit)
    try {
      const response = await attempt(request, limit)
      if (response.status < 500) return response
    } catch (error) {
      if (!(error instanceof ProviderError) || error.problem !== 'unreachable') throw error
    }
    return attempt(request, limit)
  }

  function startRecord(endpoint: Endpoint): (response: ResponseLabels) => void {
    const started = performance.now()
    return response => {
      const seconds = (performance.now() - started) / 1000
      metrics.observe('provider_request_duration_seconds', seconds, { endpoint, ...response })
    }
  }

  return {
    /**
     * Waits in the queue of this name until a slot is free, and returns a function that frees the slot. Slots limit the number of calls
     * in progress. Calls in different queues do not delay each other.
     * @throws ProviderError if the queue is full, or if no slot becomes free within the time limit
     */
    async enterQueue(name: string, endpoint: Endpoint, options: QueueOptions = {}): Promise<() => void> {
      const record = startRecord(endpoint)
      try {
        return await enterQueue(name, endpoint, options, timeoutMs)
      } catch (error) {
        // A request without a slot is not sent, but the metrics count it as a call.
        record({ error: errorOf(error) })
        throw error
      }
    },
    /**
     * Sends a request. Every request except a token request first waits for a slot in the queue of its endpoint, and the waiting time
     * counts toward its time limit. For a token request, the caller must enter a queue before this call. Returns the response,
     * whatever its status is. Repeats a GET request once if the connection fails or the status is 500 or above.
     * @throws ProviderError if there is no complete response
     */
    call: tracing ? (request: TransportRequest) => sendInSpan(tracing, send, request) : send,
    /** Closes all connections. */
    close: () => agents.destroy()
  }
}

type Send = (request: TransportRequest) => Promise<TransportResponse>

type EnterQueue = (name: string, endpoint: Endpoint, options: QueueOptions, limitMs: number) => Promise<() => void>

/** Returns the function that waits for a slot in the queue of a name. A queue is created when it is first entered. */
function createQueues(limits: CallLimits, metrics: Metrics): EnterQueue {
  const queues = new Map<string, FairQueue>()

  function addQueue(name: string): FairQueue {
    const queue = createFairQueue(limits)
    queues.set(name, queue)
    metrics.watch('queued_requests', queue.length, { queue: name.replaceAll(' ', '_') })
    return queue
  }

  return async function enterQueue(name, endpoint, { isUrgent = false, requester = NOBODY }, limitMs) {
    const queue = queues.get(name) ?? addQueue(name)
    const started = performance.now()
    try {
      const turn = queue.enter({ queue: isUrgent ? 'urgent' : 'ordinary', isUrgent, ...requester })
      if (turn.state === 'waiting') await queue.wait(turn, limitMs)
      return () => queue.leave(turn)
    } catch (error) {
      if (error instanceof QueueError && error.reason === 'timeout') {
        const durationMs = Math.round(performance.now() - started)
        throw new ProviderError(endpoint, 'timeout', 'the call waited in the queue for too long', { durationMs })
      }
      throw new ProviderError(endpoint, 'queue_full', 'too many calls were already waiting, so this call was not sent')
    }
  }
}

// The query of the URL and the form are not recorded, because they may contain secrets. The provider gets no trace
// headers, because it often belongs to another organisation.
function sendInSpan(tracing: Tracing, send: Send, request: TransportRequest): Promise<TransportResponse> {
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

function errorOf(error: unknown): string {
  return error instanceof ProviderError ? error.problem : 'other'
}
