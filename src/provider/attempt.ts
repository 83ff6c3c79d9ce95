/**
 * Sends one HTTP request to the identity provider with the package got. An error of got contains the whole request with
 * its credentials. This file therefore replaces the error with a `ProviderError`, which contains the endpoint but no
 * secret.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Got, Agents as GotAgents, HandlerFunction } from 'got'
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

/** The time limit of a call. An AbortSignal would add about 3 % to the CPU time of a call. */
export interface CallLimit {
  isExceeded: boolean
  /** The request in progress. */
  request: { destroy(): unknown } | undefined
}

export function createAttempt(agents: Pick<Agents, 'for'>) {
  let loading: Promise<Got> | undefined

  /**
   * Sends a request once, and returns the response, whatever its status is.
   * @throws ProviderError if there is no complete response, or if the limit is exceeded before it is complete
   */
  return async function attempt(request: TransportRequest, limit: CallLimit): Promise<TransportResponse> {
    const started = performance.now()
    const elapsed = () => Math.round(performance.now() - started)
    // The first request imports the package `got`. The import needs 50 ms and 10 MB of memory, so it would slow down the start.
    loading ??= loadGot(agents.for())
    const got = await loading
    try {
      const agent = request.onNewConnection ? agents.for(true) : undefined
      const { statusCode = 0, headers, body } = await exchange(got, request, limit, agent)
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
      throw providerErrorOf(error, request.endpoint, limit, elapsed())
    }
  }
}

async function loadGot(agent: ReturnType<Agents['for']>): Promise<Got> {
  const { got } = await import('got')
  return got.extend({
    agent,
    handlers: [withFewOptions],
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    decompress: false,
    headers: { accept: 'application/json', 'user-agent': 'platform-auth-server' }
  })
}

/**
 * got would give Node 34 options, almost all of them undefined. Node copies them several times, which needs a third of the CPU time
 * of a call. So Node gets only these, and got's other options for connections have no effect. Certificates are verified whatever
 * NODE_TLS_REJECT_UNAUTHORIZED says, as with got's own options.
 */
const withFewOptions: HandlerFunction = function withFewOptions(options, next) {
  const createNativeRequestOptions = () => ({
    method: options.method,
    headers: options.headers,
    agent: (options.url as URL).protocol === 'https:' ? options.agent.https : options.agent.http,
    rejectUnauthorized: true
  })
  return next(Object.assign(options, { createNativeRequestOptions }))
}

function providerErrorOf(error: unknown, endpoint: Endpoint, limit: CallLimit, durationMs: number): ProviderError {
  if (error instanceof BodyTooLargeError) {
    return new ProviderError(endpoint, 'invalid_response', 'the response was larger than 1 MiB', { durationMs })
  }
  if (limit.isExceeded) return new ProviderError(endpoint, 'timeout', 'no complete response in time', { durationMs })
  // Node's error code (ECONNREFUSED, CERT_HAS_EXPIRED, …) is logged. The message is not logged, because it may quote
  // the request.
  const code = errorCode(error)
  const detail = `connection failed (${code ?? 'unknown reason'})`
  return new ProviderError(endpoint, 'unreachable', detail, { durationMs, code })
}

type ReceivedResponse = Pick<IncomingMessage, 'statusCode' | 'headers'> & { readonly body: Buffer }

/**
 * Sends a request and receives the whole response. This function reads got's stream itself, because got's promise needs about one
 * sixth more CPU time.
 */
function exchange(got: Got, { url, headers, form }: TransportRequest, limit: CallLimit, agent?: GotAgents) {
  return new Promise<ReceivedResponse>((resolve, reject) => {
    if (limit.isExceeded) throw new Error('the limit was exceeded before the request')
    const stream = got.stream(url, {
      method: form ? 'POST' : 'GET',
      ...(agent && { agent }),
      ...(headers && { headers: { ...headers } }),
      ...(form && { form: { ...form } })
    })
    limit.request = stream
    const chunks: Buffer[] = []
    let bytes = 0
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes <= MAX_BODY_BYTES) return
      reject(new BodyTooLargeError())
      stream.destroy()
    })
    stream.on('end', () => {
      const { statusCode, headers = {} } = stream.response ?? {}
      resolve({ statusCode, headers, body: Buffer.concat(chunks) })
    })
    stream.on('error', reject)
    // A destroyed stream emits neither `error` nor `end`, so the promise is rejected here. After one of these events, this call has
    // no effect.
    stream.on('close', () => reject(new Error('the request was aborted')))
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
