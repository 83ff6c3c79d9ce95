import { isJsonObject } from '../base/json.js'
import { GATEWAY_CLIENT_ERRORS } from './quirks.js'

/**
 * What a response of the token endpoint means for the refresh token that was sent:
 * - `success`: the response has new tokens
 * - `end`: the refresh token is invalid and will never work again, so the user must sign in again
 * - `ambiguous`: the refresh token may be invalid. Some providers respond like this to an invalid token, and others because of a
 *   temporary fault
 * - `failure`: the response says nothing about the refresh token
 */
export type Meaning = 'success' | 'end' | 'ambiguous' | 'failure'

/** The error code of RFC 6749 section 5.2 for a client that the provider does not know. */
const INVALID_CLIENT = 'invalid_client'

const ENDS: ReadonlySet<unknown> = new Set([
  'invalid_grant',
  // A refresh token never regains a scope that it has lost, so the same request cannot succeed later.
  'invalid_scope',
  // Entra, and OpenID Connect Core section 3.1.2.6.
  'interaction_required',
  'login_required',
  'consent_required',
  // Auth0
  'mfa_required',
  // Hydra
  'token_inactive',
  // GitHub
  'bad_refresh_token',
  'expired_token'
])

const TEMPORARY: ReadonlySet<unknown> = new Set(['temporarily_unavailable', 'server_error', 'slow_down'])

// Only the operator can correct these.
const ABOUT_CLIENT: ReadonlySet<unknown> = new Set([
  INVALID_CLIENT,
  'unauthorized_client',
  'unsupported_grant_type',
  'incorrect_client_credentials'
])

interface TokenResponse {
  readonly status: number
  /** The parsed JSON, or undefined if the body is not JSON. */
  readonly json: unknown
}

/** Decides what a response of the token endpoint means. */
export function meaningOf({ status, json }: TokenResponse): Meaning {
  if (isSuccess(status) && !isErrorWithSuccess(json)) return 'success'
  const isRefusal = isSuccess(status) || (status >= 400 && status < 500 && status !== 408 && status !== 429)
  // A refusal without JSON comes from a firewall or a load balancer, which may refuse the requests of all users.
  if (!isRefusal || !isJsonObject(json)) return 'failure'
  const error = errorOf(json)
  if (TEMPORARY.has(error) || ABOUT_CLIENT.has(error)) return 'failure'
  if (ENDS.has(error)) return 'end'
  return error !== undefined || status === 400 ? 'ambiguous' : 'failure'
}

/** Returns the member `error` of an error response, or the code that replaces it. Undefined if there is none. */
export function errorOf(json: unknown): unknown {
  const { error } = isJsonObject(json) ? json : {}
  if (gatewayCodeOf(json) !== undefined) return INVALID_CLIENT
  return error === null || error === '' ? undefined : error
}

/** Returns the code of the gateway in front of Autodesk Platform Services that replaces `invalid_client`. Undefined if there is none. */
export function gatewayCodeOf(json: unknown): string | undefined {
  const { errorCode } = isJsonObject(json) ? json : {}
  return typeof errorCode === 'string' && GATEWAY_CLIENT_ERRORS.has(errorCode) ? errorCode : undefined
}

/** True if the provider rejects the client of this server, for example because of a wrong client secret. */
export function isAboutClient(json: unknown): boolean {
  return ABOUT_CLIENT.has(errorOf(json))
}

/** True if the same request may succeed later. */
export function isTemporaryCode(code: string): boolean {
  return TEMPORARY.has(code)
}

/** RFC 6749 section 5.1 requires status 200. Some providers send 201. */
function isSuccess(status: number): boolean {
  return status === 200 || status === 201
}

/** GitHub reports errors with status 200. */
function isErrorWithSuccess(json: unknown): boolean {
  return isJsonObject(json) && errorOf(json) !== undefined && !json.access_token
}
