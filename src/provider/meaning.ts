import { isJsonObject } from '../base/json.js'
import { GATEWAY_CLIENT_ERRORS } from './quirks.js'

/**
 * What a response of the token endpoint means for the refresh token that was sent:
 * - `success`: the response has new tokens
 * - `end`: the refresh token is invalid and will never work again, so the user must sign in again
 * - `ambiguous`: a code of OAuth's form. Some providers respond like this to an invalid token, and others because of a temporary fault
 * - `weak`: the response blames the client, or has no code, as the page of a firewall. Rarely, a provider responds like this to one
 *   invalid token, so it needs much evidence (`login/evidence.ts`)
 * - `failure`: the response says nothing about the refresh token
 */
export type Meaning = 'success' | 'end' | 'ambiguous' | 'weak' | 'failure'

/** The error code of RFC 6749 section 5.2 for a client that the provider does not know. */
const INVALID_CLIENT = 'invalid_client'

// Only the operator can correct these.
const ABOUT_CLIENT: readonly unknown[] = [
  INVALID_CLIENT,
  'unauthorized_client',
  'unsupported_grant_type',
  'incorrect_client_credentials'
]
const TEMPORARY: readonly unknown[] = ['temporarily_unavailable', 'server_error', 'slow_down']
const ENDS: readonly unknown[] = [
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
]

// The URL, the method, a proxy, the size of the request or its time may be wrong, but not the token.
const NO_REFUSALS: ReadonlySet<number> = new Set([404, 405, 407, 408, 410, 413, 421, 425, 429, 431])

interface TokenResponse {
  readonly status: number
  /** The parsed JSON, or undefined if the body is not JSON. */
  readonly json: unknown
}

/** Decides what a response of the token endpoint means. */
export function meaningOf({ status, json }: TokenResponse): Meaning {
  const error = errorOf(json)
  if (isSuccess(status) && !isErrorWithSuccess(json)) return 'success'
  const isRefusal = isSuccess(status) || (status >= 400 && status < 500 && !NO_REFUSALS.has(status))
  if (!isRefusal || TEMPORARY.includes(error)) return 'failure'
  if (ENDS.includes(error)) return 'end'
  return isErrorCode(error) && !ABOUT_CLIENT.includes(error) ? 'ambiguous' : 'weak'
}

/**
 * Returns true if `code` has the form of an OAuth error code: words in lower case, joined by underscores. Error codes
 * are logged and shown, so a token that a faulty provider sends in place of a code must not be accepted.
 */
export function isErrorCode(code: unknown): code is string {
  return typeof code === 'string' && /^(?=.{1,64}$)[a-z]+(?:_[a-z]+)*$/.test(code)
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
  return ABOUT_CLIENT.includes(errorOf(json))
}

/** True if the same request may succeed later. */
export function isTemporaryCode(code: string): boolean {
  return TEMPORARY.includes(code)
}

/** RFC 6749 section 5.1 requires status 200. Some providers send 201. */
function isSuccess(status: number): boolean {
  return status === 200 || status === 201
}

/** GitHub reports errors with status 200. */
function isErrorWithSuccess(json: unknown): boolean {
  return isJsonObject(json) && errorOf(json) !== undefined && !json.access_token
}
