/** The error responses of the API proxy. */
import { BodyTooLargeError } from '../proxy/request-body.js'
import type { FailureKind, UpstreamFailure } from '../proxy/upstream.js'
import { HttpError } from './http-error.js'

const FAILURES: Readonly<Record<FailureKind, readonly [status: number, description: string]>> = {
  unreachable: [502, 'The API could not be reached.'],
  unusable: [502, 'The API gave an answer that could not be used.'],
  timeout: [504, 'The API did not answer in time.']
}

/** The upstream failed before the head of its response came, or its response cannot be forwarded. */
export function upstreamError(kind: FailureKind, cause: unknown): HttpError {
  const [status, description] = FAILURES[kind]
  return new HttpError({ status, error: `upstream_${kind}`, description, cause })
}

/** @param maxBodyBytes the limit of the request body, which may be the reason of the failure */
export function errorOfFailure({ kind, cause }: UpstreamFailure, maxBodyBytes: number): HttpError {
  return cause instanceof BodyTooLargeError ? tooLarge(maxBodyBytes) : upstreamError(kind, cause)
}

/**
 * The upstream answered 401. The client gets 502, because a page would take 401 to mean that nobody is signed in, and would
 * start a login again and again.
 */
export function upstreamUnauthorized(): HttpError {
  const description = 'The API did not accept the token of your session.'
  return new HttpError({ status: 502, error: 'upstream_unauthorized', description })
}

/** Too many requests to the same API are in progress. */
export function upstreamBusy(): HttpError {
  const description = 'Too many requests to the API are under way.'
  const headers = { 'Retry-After': '1' }
  return new HttpError({ status: 503, error: 'temporarily_unavailable', description, headers })
}

/** The connection ends with this response. To keep it, the server would have to read the rest of the body. */
export function tooLarge(maxBodyBytes: number): HttpError {
  const description = `The body of this request is longer than ${maxBodyBytes} bytes.`
  return new HttpError({ status: 413, error: 'invalid_request', description, headers: { Connection: 'close' } })
}
