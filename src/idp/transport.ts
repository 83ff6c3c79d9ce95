/**
 * HTTP towards the identity provider; the only file that knows got. Errors of got carry the request, credentials and
 * all, so that none leaves here: each becomes an UpstreamError that names the endpoint and nothing secret.
 */
import http from 'node:http'
import https from 'node:https'
import type { Got, Method } from 'got'
import { type Endpoint, UpstreamError } from './errors.js'
import { createQueue, type Queue, QueueFullError, type QueueLimits } from './queue.js'

export interface TransportRequest {
  readonly endpoint: Endpoint
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as application/x-www-form-urlencoded by POST; without it the request is a GET. */
  readonly form?: Readonly<Record<string, string>>
  /** When less than the usual time is allowed. */
  readonly timeoutMs?: number
}

export interface TransportResponse {
  readonly status: number
  /** The parsed JSON, or undefined when the body was not JSON. */
  readonly json: unknown
  readonly retryAfterSeconds: number | undefined
  /** What the provider's clock said, in milliseconds since the epoch. */
  readonly date: number | undefined
  /** Where a redirect would have led; none is followed. */
  readonly location: string | undefined
  readonly durationMs: number
}

export interface Transport {
  /** Any whole answer, whatever its status. Throws UpstreamError. */
  call(request: TransportRequest): Promise<TransportResponse>
  close(): void
}

const LONGEST_ANSWER = 1024 * 1024
// Shorter than any provider's own patience: a socket that it closes just as we send costs a single-use token.
const IDLE_SOCKET_MS = 4000
const GET_ATTEMPTS = 2
// For each endpoint, so that slow profiles do not hold up renewals. With answers in 200 ms this is 19,000 calls a
// minute, far beyond what providers allow an application; what waits longer than the one timeout gives up by itself.
const LIMITS: QueueLimits = { atOnce: 64, waiting: 1000 }

let loading: Promise<typeof import('got')> | undefined

// By the first call: it takes 10 MB and a twentieth of a second, which start-up is better off without.
function loadGot() {
  loading ??= import('got')
  return loading
}

export function createTransport(timeoutMs: number, idleSocketMs = IDLE_SOCKET_MS, limits = LIMITS): Transport {
  const agents = {
    http: new http.Agent({ keepAlive: true, timeout: idleSocketMs }),
    https: new https.Agent({ keepAlive: true, timeout: idleSocketMs })
  }
  let extending: Promise<Got> | undefined
  const client = () => {
    extending ??= loadGot().then(({ got }) =>
      got.extend({
        agent: agents,
        retry: { limit: 0 },
        followRedirect: false,
        throwHttpErrors: false,
        decompress: false,
        responseType: 'text',
        headers: { accept: 'application/json', 'user-agent': 'platform-auth-server' }
      })
    )
    return extending
  }

  async function attempt(request: TransportRequest, deadline: AbortSignal): Promise<TransportResponse> {
    const started = performance.now()
    const elapsed = () => Math.round(performance.now() - started)
    const got = await client()
    const tooLarge = new AbortController()
    const method: Method = request.form ? 'POST' : 'GET'
    try {
      const call = got(request.url, {
        method,
        signal: AbortSignal.any([deadline, tooLarge.signal]),
        ...(request.headers && { headers: { ...request.headers } }),
        ...(request.form && { form: { ...request.form } })
      })
      call.on('downloadProgress', ({ transferred }) => transferred > LONGEST_ANSWER && tooLarge.abort())
      const { statusCode, body, headers } = await call
      return {
        status: statusCode,
        json: parse(body),
        retryAfterSeconds: secondsOf(headers['retry-after']),
        date: timeOf(headers.date),
        location: headers.location,
        durationMs: elapsed()
      }
    } catch (error) {
      const durationMs = elapsed()
      if (tooLarge.signal.aborted) {
        throw new UpstreamError(request.endpoint, 'unusable', 'the answer was larger than 1 MiB', { durationMs })
      }
      if (deadline.aborted) {
        throw new UpstreamError(request.endpoint, 'timeout', 'no whole answer in time', { durationMs })
      }
      const code = codeOf(error)
      const detail = `connection failed (${code ?? 'unknown reason'})`
      throw new UpstreamError(request.endpoint, 'unreachable', detail, { durationMs, code })
    }
  }

  const queues = new Map<Endpoint, Queue>()

  async function enter(endpoint: Endpoint, deadline: AbortSignal): Promise<() => void> {
    const queue = queues.get(endpoint) ?? createQueue(limits)
    queues.set(endpoint, queue)
    const started = performance.now()
    try {
      return await queue.enter(deadline)
    } catch (error) {
      if (error instanceof QueueFullError) {
        throw new UpstreamError(endpoint, 'busy', 'too many calls were waiting for it, so this one was not made')
      }
      const durationMs = Math.round(performance.now() - started)
      throw new UpstreamError(endpoint, 'timeout', 'its turn did not come in time', { durationMs })
    }
  }

  async function callInTurn(request: TransportRequest, deadline: AbortSignal): Promise<TransportResponse> {
    // A token request is never sent twice: the first may have arrived, and what it carries is single use.
    let attemptsLeft = request.form ? 1 : GET_ATTEMPTS
    for (;;) {
      attemptsLeft--
      try {
        const response = await attempt(request, deadline)
        if (attemptsLeft === 0 || response.status < 500) return response
      } catch (error) {
        if (attemptsLeft === 0 || !(error instanceof UpstreamError) || error.problem !== 'unreachable') throw error
      }
    }
  }

  return {
    async call(request) {
      const deadline = AbortSignal.timeout(request.timeoutMs ?? timeoutMs)
      const leave = await enter(request.endpoint, deadline)
      try {
        return await callInTurn(request, deadline)
      } finally {
        leave()
      }
    },
    close() {
      agents.http.destroy()
      agents.https.destroy()
    }
  }
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

function secondsOf(retryAfter: string | undefined): number | undefined {
  return retryAfter && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined
}

function timeOf(date: string | undefined): number | undefined {
  const time = Date.parse(date ?? '')
  return Number.isNaN(time) ? undefined : time
}

// Node's code (ECONNREFUSED, CERT_HAS_EXPIRED, …) says what an operator needs; the message may quote the request.
function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' ? code : undefined
}
