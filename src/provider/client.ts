/**
 * The requests that the server sends to the identity provider. Each response is validated. A request fails with
 * OAuthError if the provider responds with an OAuth error code, and with ProviderError in all other cases.
 *
 * - `metadata`: the endpoints; `moved-endpoints` follows a provider that moves them, `quirks` is what providers do differently
 * - `transport`: the queues and limits of calls; `attempt` sends one, `response-text` reads its body, `outbound` connects
 * - `client-authentication`, `browser-urls`: how this server authenticates, and the URLs that browsers open
 * - `token-set`, `id-token`, `logout-token`: the checks of what the provider sends
 * - `meaning`, `provider-error`: what an error means for the refresh token, and the errors themselves
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { JSONWebKeySet, JWK } from 'jose'
import { isJsonObject } from '../base/json.js'
import type { Config } from '../config/settings.js'
import type { TransportRequest, TransportResponse } from './attempt.js'
import { createBrowserUrls } from './browser-urls.js'
import { type ClientAuthentication, createClientAuthentication } from './client-authentication.js'
import { type UserInfo, userInfoOf } from './id-token.js'
import { errorOf, gatewayCodeOf, isErrorCode, meaningOf } from './meaning.js'
import {
  createEndpoint,
  createMetadata,
  type GetEndpoint,
  type GetMetadata,
  issuerOf,
  type MetadataOptions
} from './metadata.js'
import { mayHaveMoved } from './moved-endpoints.js'
import { type Endpoint, OAuthError, ProviderError } from './provider-error.js'
import { parseTokenSet, type TokenSet } from './token-set.js'
import type { QueueOptions, Transport } from './transport.js'

/** The client of the identity provider. All requests throw OAuthError or ProviderError. */
export type IdentityProvider = ReturnType<typeof createIdentityProvider>

const REVOCATION_TIMEOUT_MS = 2000
const REVOCATION_PAUSE_MS = 200
const REVOCATION_ATTEMPTS = 3
// The connection ended before the response, for example because the provider had closed it while it was idle.
const CUT_CONNECTION: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED'])

/**
 * Creates the client.
 * @param now the clock, in milliseconds since the epoch
 * @param onUnusable gets the problem of each endpoint of the discovery document that is off because it cannot be used
 * @example const tokenSet = await createIdentityProvider(config.platform, transport).refreshTokenGrant(grant)
 */
export function createIdentityProvider(
  platform: Config['platform'],
  transport: Pick<Transport, 'call' | 'enterQueue'>,
  now: () => number = Date.now,
  report?: MetadataOptions['report']
) {
  const { clientId, callbackUrl: redirectUri } = platform
  const metadata = createMetadata(platform, transport, { now, report })
  const endpoint = createEndpoint(platform, metadata)
  const issuer = issuerOf(platform)
  const client = createClientAuthentication(platform, endpoint, now)

  /** Sends a request, and tells the metadata whether the endpoint may have moved. */
  async function call(request: TransportRequest): Promise<TransportResponse> {
    const response = await transport.call(request).catch((error: unknown) => {
      if (isWithoutResponse(error)) metadata.noteRequest(request.endpoint, true)
      throw error
    })
    metadata.noteRequest(request.endpoint, mayHaveMoved(response.status))
    return response
  }

  async function tokenRequest(form: Record<string, string>, timeoutMs: number | undefined): Promise<TokenSet> {
    const request = { endpoint: 'token', url: await endpoint('tokenEndpoint'), timeoutMs } as const
    const response = await call({ ...request, ...(await client.authenticated(form)) })
    if (meaningOf(response) !== 'success') throw failure('token', response)
    return parseTokenSet(response.json, response.date)
  }

  return {
    metadata: metadata as GetMetadata,
    endpoint,
    /** The configured issuer. Undefined if only the endpoints are configured. */
    issuer,
    /**
     * Waits for a slot in a queue for token requests, calls `send`, and releases the slot when `send` has settled. Code exchanges
     * have a separate queue, so that callbacks with invalid codes cannot delay refreshes. Rejects with ProviderError, without calling
     * `send`, if too many requests are waiting.
     * @param options.isUrgent true for the second token request of dual mode. This request has priority over the first requests of
     *   other refreshes, because a login or refresh is complete only when it has the tokens of both requests.
     */
    async inTokenQueue<Response>(
      name: 'refresh' | 'code exchange',
      options: QueueOptions,
      send: () => Promise<Response>
    ): Promise<Response> {
      // Discovery may take long, so it happens before the caller calculates the time that is left for the token
      // request.
      await endpoint('tokenEndpoint')
      const leave = await transport.enterQueue(name, 'token', options)
      try {
        return await send()
      } finally {
        leave()
      }
    },
    ...createBrowserUrls(platform, endpoint),
    /** Exchanges an authorization code for tokens (RFC 6749 section 4.1.3). */
    authorizationCodeGrant({ code, codeVerifier, timeoutMs }: CodeGrant): Promise<TokenSet> {
      const form = {
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUri,
        ...(platform.pkce && { code_verifier: codeVerifier })
      }
      return tokenRequest(form, timeoutMs)
    },
    /** Uses a refresh token to request new tokens (RFC 6749 section 6). */
    refreshTokenGrant({ refreshToken, scope, timeoutMs }: RefreshGrant): Promise<TokenSet> {
      const form = { grant_type: 'refresh_token', refresh_token: refreshToken, ...(scope && { scope }) }
      return tokenRequest(form, timeoutMs)
    },
    /**
     * Requests the user info (OpenID Connect Core section 5.3), which is JSON or a JWT.
     * @param subject the `sub` of the checked ID token of the login. User info that has another `sub`, or no `sub`, must not be used
     *   (section 5.3.2) and is rejected. Undefined if there is no ID token to compare with.
     * @throws ProviderError if the request fails, or if the provider has no user info endpoint
     */
    async userInfo(accessToken: string, subject: string | undefined): Promise<UserInfo> {
      const url = await endpoint('userinfoEndpoint')
      const unusable = (detail: string) => new ProviderError('userinfo', 'invalid_response', detail)
      if (url === undefined) throw unusable('the provider has no user info endpoint')
      const headers = { authorization: `Bearer ${accessToken}` }
      const response = await call({ endpoint: 'userinfo', url, headers })
      if (response.status !== 200) throw failure('userinfo', response)
      const { json, jwt } = response
      const userInfo = jwt === undefined ? json : userInfoOf(jwt, { issuer, clientId }, unusable)
      if (!isJsonObject(userInfo)) throw unusable('the response is not a JSON object')
      if (subject !== undefined && userInfo.sub !== subject) throw unusable('its sub is not that of the login')
      return userInfo
    },
    /**
     * Requests the public keys of the provider (JWK Set, RFC 7517 section 5). Neither checks nor caches the keys.
     * @throws ProviderError if the request fails, or if the discovery document has no usable `jwks_uri`
     */
    async signingKeys(): Promise<JSONWebKeySet> {
      const { jwksUri: url } = await metadata()
      const unusable = (detail: string) => new ProviderError('jwks', 'invalid_response', detail)
      if (url === undefined) throw unusable('the discovery document has no usable jwks_uri')
      const response = await call({ endpoint: 'jwks', url })
      if (response.status !== 200) throw failure('jwks', response)
      const keys = isJsonObject(response.json) ? response.json.keys : undefined
      if (!Array.isArray(keys)) throw unusable('the response is not a JWK Set')
      // RFC 7517 section 5: a member that is not understood is ignored.
      return { keys: keys.filter(isJsonObject) as unknown[] as JWK[] }
    },
    /**
     * Revokes a refresh token (RFC 7009 section 2.1). Does nothing if the provider has no revocation endpoint. A second revocation of
     * a token has no effect, so a request without a response is repeated, but each time on a new connection.
     */
    revokeRefreshToken: createRevokeRefreshToken(call, endpoint, client),
    replaceCredentials: client.replaceCredentials,
    credentialsId: client.credentialsId
  }
}

function isWithoutResponse(error: unknown): boolean {
  return error instanceof ProviderError && (error.problem === 'unreachable' || error.problem === 'timeout')
}

function createRevokeRefreshToken(call: Transport['call'], endpoint: GetEndpoint, client: ClientAuthentication) {
  async function revoke(refreshToken: string, limits: Pick<TransportRequest, 'timeoutMs' | 'onNewConnection'>) {
    const url = await endpoint('revocationEndpoint')
    if (url === undefined) return
    const form = { token: refreshToken, token_type_hint: 'refresh_token' }
    const request = { endpoint: 'revocation', url, ...limits, ...(await client.authenticated(form)) } as const
    const response = await call(request)
    if (response.status !== 200) throw failure('revocation', response)
  }

  return async function revokeRefreshToken(refreshToken: string): Promise<void> {
    const started = performance.now()
    for (let attempt = 1; ; attempt++) {
      // All attempts together have one time limit.
      const timeoutMs = Math.max(1, Math.round(REVOCATION_TIMEOUT_MS - (performance.now() - started)))
      try {
        return await revoke(refreshToken, { timeoutMs, onNewConnection: attempt > 1 })
      } catch (error) {
        if (attempt === REVOCATION_ATTEMPTS || !mayRepeatRevocation(error)) throw error
      }
      await pause(REVOCATION_PAUSE_MS)
    }
  }
}

interface CodeGrant {
  readonly code: string
  /** Is sent only with the setting `platform.pkce`. */
  readonly codeVerifier: string
  /** The time limit in milliseconds. The default is the limit for all calls to the provider. */
  readonly timeoutMs?: number | undefined
}

interface RefreshGrant extends Pick<CodeGrant, 'timeoutMs'> {
  readonly refreshToken: string
  /** If undefined, the request names no scopes. */
  readonly scope: string | undefined
}

/** RFC 7009 section 2.2.1: after status 503 the token is still valid, and the client may send the request again. */
function mayRepeatRevocation(error: unknown): boolean {
  return error instanceof ProviderError && (error.status === 503 || CUT_CONNECTION.has(error.code))
}

function failure(endpoint: Endpoint, response: TransportResponse): Error {
  const { status, json, retryAfterSeconds, durationMs } = response
  const error = errorOf(json)
  // GitHub reports errors with status 200.
  const isRejection = status < 500 && status !== 429
  if (isRejection && isErrorCode(error)) {
    return new OAuthError({ error, status, endpoint, retryAfterSeconds, gatewayCode: gatewayCodeOf(json) })
  }
  return new ProviderError(endpoint, 'invalid_response', `it responded with ${status}`, {
    status,
    durationMs,
    retryAfterSeconds,
    ...(endpoint === 'token' && { meaning: meaningOf(response) })
  })
}
