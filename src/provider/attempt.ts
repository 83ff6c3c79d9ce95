/**
 * Sends one HTTP request to the identity provider with the package got. An error of got contains the whole request with
 * its credentials. This file therefore replaces the error with a `ProviderError`, which contains the endpoint but no
 * secret.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Got, Agents as GotAgents } from 'got'
import { errorCode } from '../base/error-code.js'
import { parseJson } from '../base/json.js'
import type { Agents } from './outbound.js'
import { type Endpoint, ProviderError } from './provider-error.js'
import { BodyTooLargeError, MAX_BODY_BYTES, textOf } from './response-text.js'

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

/**
 * Sends a request once, and returns the response, whatever its status is.
 * @throws ProviderError if there is no complete response, or if the signal is aborted before it is complete
 */
export type Attempt = (request: TransportRequest, signal: AbortSignal) => Promise<TransportResponse>

export function createAttempt(agents: Pick<Agents, 'for'>): Attempt {
  let loading: Promise<Got> | undefined

  return async function attempt(request, signal) {
    const started = performance.now()
    const elapsed = () => Math.round(performance.now() - started)
    // The first request imports the package `got`. The import needs 50 ms and 10 MB of memory, so it would slow down the start.
    loading ??= loadGot()
    const got = await loading
    try {
      const agent = agents.for(request.onNewConnection)
      const { statusCode = 0, headers, body } = await exchange(got, request, agent, signal)
      const text = await textOf(body, headers)
      return {
        status: statusCode,
        json: parseJson(text),
        ...(/^application\/jwt\s*(?:;|$)/i.test(headers['content-type'] ?? '') && { jwt: text.trim() }),
        retryAfterSeconds: waitOf(statusCode, headers, Date.now()),
        date: timeOf(headers.date),
        location: headers.location,
        setCookies: headers['set-cookie'] ?? [],
        durationMs: elapsed()
      }
    } catch (error) {
      throw providerErrorOf(error, request.endpoint, signal, elapsed())
    }
  }
}

async function loadGot(): Promise<Got> {
  const { got } = await import('got')
  return got.extend({
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    decompress: false,
    headers: { accept: 'application/json', 'user-agent': 'platform-auth-server' }
  })
}

function providerErrorOf(error: unknown, endpoint: Endpoint, signal: AbortSignal, durationMs: number): ProviderError {
  if (error instanceof BodyTooLargeError) {
    return new ProviderError(endpoint, 'invalid_response', 'the response was larger than 1 MiB', { durationMs })
  }
  if (signal.aborted) return new ProviderError(endpoint, 'timeout', 'no complete response in time', { durationMs })
  // Node's error code (ECONNREFUSED, CERT_HAS_EXPIRED, …) is logged. The message is not logged, because it may quote
  // the request.
  const code = errorCode(error)
  const detail = `connection failed (${code ?? 'unknown reason'})`
  return new ProviderError(endpoint, 'unreachable', detail, { durationMs, code })
}

type ReceivedResponse = Pick<IncomingMessage, 'statusCode' | 'headers'> & { readonly body: Buffer }

/**
 * Sends a request and receives the whole response. This function reads got's stream and listens to the signal itself,
 * because got's promise with the option `signal` needs about one sixth more CPU time.
 */
function exchange(
  got: Got,
  request: TransportRequest,
  agent: GotAgents,
  signal: AbortSignal
): Promise<ReceivedResponse> {
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
      if (bytes <= MAX_BODY_BYTES) return
      reject(new BodyTooLargeError())
      stream.destroy()
    })
    stream.on('end', () => {
      const { statusCode, headers = {} } = response
      resolve({ statusCode, headers, body: Buffer.concat(chunks) })
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
