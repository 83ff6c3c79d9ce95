/**
 * The requests that the server sends to the identity provider. Each response is validated. A request fails with
 * OAuthError if the provider responds with an OAuth error code, and with ProviderError in all other cases.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { JSONWebKeySet, JWK } from 'jose'
import { isJsonObject } from '../base/json.js'
import { type SigningKey, signingKeyOf } from '../config/client-key.js'
import type { Config } from '../config/settings.js'
import { homeUrlOf } from '../config/urls.js'
import { type Endpoint, isErrorCode, OAuthError, ProviderError } from './errors.js'
import { type UserInfo, userInfoOf } from './id-token.js'
import {
  type APS,
  createMetadata,
  type GetMetadata,
  issuerOf,
  type OnUnusable,
  type ProviderMetadata
} from './metadata.js'
import type { QueueOptions } from './queue.js'
import { quirksOf } from './quirks.js'
import { errorOf, gatewayCodeOf, meaningOf } from './refusal.js'
import { parseTokenSet, type TokenSet } from './token-set.js'
import type { Transport, TransportRequest, TransportResponse } from './transport.js'

type EndpointName = Exclude<keyof typeof APS, 'issuer'>

/** The client of the identity provider. All requests throw OAuthError or ProviderError. */
export interface IdentityProvider {
  readonly metadata: GetMetadata
  /**
   * Returns the URL of an endpoint, or undefined if the provider has none. A configured endpoint works while discovery does not.
   * @throws ProviderError if the endpoint is unknown, because discovery does not work
   */
  endpoint<Name extends EndpointName>(name: Name): Promise<ProviderMetadata[Name]>
  /** The configured issuer. Undefined if only the endpoints are configured. */
  readonly issuer: string | undefined
  /**
   * Waits for a slot in a queue for token requests, calls `send`, and releases the slot when `send` has settled. Code exchanges
   * have a separate queue, so that callbacks with invalid codes cannot delay refreshes. Rejects with ProviderError, without calling
   * `send`, if too many requests are waiting.
   * @param options.isUrgent true for the second token request of dual mode. This request has priority over the first requests of
   *   other refreshes, because a login or refresh is complete only when it has the tokens of both requests.
   */
  inTokenQueue<Response>(
    name: 'refresh' | 'code exchange',
    options: QueueOptions,
    send: () => Promise<Response>
  ): Promise<Response>
  /** Returns the URL at the provider to which the server redirects the browser for a login (RFC 6749 section 4.1.1). */
  authorizationUrl(request: AuthorizationRequest): Promise<string>
  /**
   * Returns the URL that a browser opens to sign out at the provider (OpenID Connect RP-Initiated Logout section 2). The provider
   * then redirects the browser to the start page. Returns undefined if the provider has no end-session endpoint.
   * @param idTokenHint the newest ID token of the session. It is left out if the URL would be too long.
   */
  endSessionUrl(idTokenHint?: string): Promise<string | undefined>
  /**
   * True if a logout can send this ID token as a hint, so that the session should keep it. If the end-session endpoint is unknown
   * at the moment, the token may be needed later.
   */
  takesLogoutHint(idToken: string): Promise<boolean>
  /** Exchanges an authorization code for tokens (RFC 6749 section 4.1.3). */
  authorizationCodeGrant(grant: CodeGrant): Promise<TokenSet>
  /** Uses a refresh token to request new tokens (RFC 6749 section 6). */
  refreshTokenGrant(grant: RefreshGrant): Promise<TokenSet>
  /**
   * Requests the user info (OpenID Connect Core section 5.3), which is JSON or a JWT.
   * @param subject the `sub` of the checked ID token of the login. User info that has another `sub`, or no `sub`, must not be used
   *   (section 5.3.2) and is rejected. Undefined if there is no ID token to compare with.
   * @throws ProviderError if the request fails, or if the provider has no user info endpoint
   */
  userInfo(accessToken: string, subject: string | undefined): Promise<UserInfo>
  /**
   * Requests the public keys of the provider (JWK Set, RFC 7517 section 5). Neither checks nor caches the keys. A failed request is
   * not repeated, because anybody can cause such requests by sending a logout token.
   * @throws ProviderError if the request fails, or if the discovery document has no usable `jwks_uri`
   */
  signingKeys(): Promise<JSONWebKeySet>
  /**
   * Revokes a refresh token (RFC 7009 section 2.1). Does nothing if the provider has no revocation endpoint. A second revocation of
   * a token has no effect, so a request without a response is repeated, but each time on a new connection.
   */
  revokeRefreshToken(refreshToken: string): Promise<void>
  /** Replaces the client secret and the private key. The next request uses the new credentials. */
  replaceCredentials(fresh: Credentials): void
}

export type Credentials = Pick<Config['platform'], 'clientSecret' | 'clientKey' | 'clientKeyId'>

const REVOCATION_TIMEOUT_MS = 2000
const REVOCATION_PAUSE_MS = 200
const REVOCATION_ATTEMPTS = 3
// The connection ended before the response, for example because the provider had closed it while it was idle.
const CUT_CONNECTION: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED'])

// Entra and many proxies refuse longer URLs. An ID token with many groups alone can have 10,000 characters.
const MAX_LOGOUT_URL_LENGTH = 2000

// RFC 7521 section 4.2.
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

// An assertion is used for one request only, so its lifetime only has to allow for a difference between the clocks of
// the two servers.
const ASSERTION_LIFETIME_SECONDS = 120

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
  onUnusable?: OnUnusable
): IdentityProvider {
  const { clientId, callbackUrl: redirectUri } = platform
  let { clientSecret } = platform
  let signingKey = signingKeyOf(platform)
  let basicCredentials: string | undefined
  const metadata = createMetadata(platform, transport, onUnusable)
  const issuer = issuerOf(platform)

  async function endpoint<Name extends EndpointName>(name: Name): Promise<ProviderMetadata[Name]> {
    const configured = platform[name]
    if (configured !== undefined && configured !== 'none') return configured as ProviderMetadata[Name]
    if (configured === 'none') return undefined as ProviderMetadata[Name]
    return (await metadata())[name]
  }

  async function authenticated(form: Record<string, string>) {
    const tokenEndpoint = await endpoint('tokenEndpoint')
    if (platform.clientAuthMethod === 'private_key_jwt' && signingKey) {
      // The audience is the issuer if it is known. If the audience were the token endpoint, a hostile provider could
      // name the token endpoint of another provider in its metadata, and replay the assertion there.
      const audience = issuer ?? tokenEndpoint
      return { form: { ...form, ...(await clientAssertion(signingKey, audience)) } }
    }
    if (platform.clientAuthMethod === 'client_secret_post') {
      return { form: { ...form, client_id: clientId, client_secret: clientSecret } }
    }
    // RFC 6749 section 2.3.1: the client id and the secret are form-encoded before they are combined.
    const { takesPlainCredentials } = quirksOf({ issuer, tokenEndpoint })
    const encode = takesPlainCredentials ? (value: string) => value : formEncoded
    basicCredentials ??= Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString('base64')
    return { form, headers: { authorization: `Basic ${basicCredentials}` } }
  }

  /**
   * Returns the parameters with which a client authenticates with its private key (RFC 7523 sections 2.2 and 3, OpenID
   * Connect Core section 9). The first call loads the package jose, so a server without a client key never loads it.
   * @param audience the recipient, which is the issuer of the provider
   */
  async function clientAssertion({ key, algorithm, keyId }: SigningKey, audience: string) {
    const { SignJWT } = await import('jose')
    const issuedAt = Math.floor(now() / 1000)
    const assertion = await new SignJWT({ jti: randomUUID() })
      .setProtectedHeader({ alg: algorithm, ...(keyId !== undefined && { kid: keyId }) })
      .setIssuer(clientId)
      .setSubject(clientId)
      .setAudience(audience)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + ASSERTION_LIFETIME_SECONDS)
      .sign(key)
    return { client_id: clientId, client_assertion_type: ASSERTION_TYPE, client_assertion: assertion }
  }

  async function tokenRequest(form: Record<string, string>, timeoutMs: number | undefined): Promise<TokenSet> {
    const request = { endpoint: 'token', url: await endpoint('tokenEndpoint'), timeoutMs } as const
    const response = await transport.call({ ...request, ...(await authenticated(form)) })
    if (meaningOf(response) !== 'success') throw failure('token', response)
    return parseTokenSet(response.json, response.date)
  }

  async function requestRevocation(
    refreshToken: string,
    limits: Pick<TransportRequest, 'timeoutMs' | 'onNewConnection'>
  ): Promise<TransportResponse | undefined> {
    const url = await endpoint('revocationEndpoint')
    const form = { token: refreshToken, token_type_hint: 'refresh_token' }
    if (!url) return undefined
    return transport.call({ endpoint: 'revocation', url, ...limits, ...(await authenticated(form)) })
  }

  async function endSessionUrl(idTokenHint?: string): Promise<string | undefined> {
    const endSessionEndpoint = await endpoint('endSessionEndpoint')
    if (endSessionEndpoint === undefined) return undefined
    const url = new URL(endSessionEndpoint)
    url.searchParams.set('post_logout_redirect_uri', homeUrlOf(redirectUri))
    const tokenEndpoint = await endpoint('tokenEndpoint').catch(() => undefined)
    const { logsOutWithoutHint } = quirksOf({ issuer, ...(tokenEndpoint !== undefined && { tokenEndpoint }) })
    if (!logsOutWithoutHint) url.searchParams.set('client_id', clientId)
    addParams(url, platform.logoutParams)
    if (logsOutWithoutHint || idTokenHint === undefined) return url.href
    const withHint = new URL(url)
    withHint.searchParams.set('id_token_hint', idTokenHint)
    return withHint.href.length > MAX_LOGOUT_URL_LENGTH ? url.href : withHint.href
  }

  const isUnknown = (name: EndpointName) =>
    endpoint(name).then(
      () => false,
      () => true
    )

  return {
    metadata,
    endpoint,
    issuer,
    async inTokenQueue(name, options, send) {
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
    async authorizationUrl({ nonce, state, scope, prompt, codeChallenge }) {
      const url = new URL(await endpoint('authorizationEndpoint'))
      // The parameters have the same order as in the SDK of Autodesk Platform Services.
      const parameters = {
        client_id: clientId,
        response_type: 'code',
        redirect_uri: redirectUri,
        nonce,
        state,
        scope: scope === '' ? undefined : scope,
        code_challenge: codeChallenge,
        code_challenge_method: codeChallenge && 'S256'
      }
      for (const [name, value] of Object.entries(parameters)) {
        if (value !== undefined) url.searchParams.append(name, value)
      }
      addParams(url, platform.authorizationParams)
      if (prompt !== undefined) url.searchParams.set('prompt', prompt)
      return url.href
    },
    endSessionUrl,
    async takesLogoutHint(idToken) {
      const url = await endSessionUrl(idToken).catch(() => undefined)
      if (url !== undefined) return new URL(url).searchParams.has('id_token_hint')
      return idToken.length < MAX_LOGOUT_URL_LENGTH && (await isUnknown('endSessionEndpoint'))
    },
    authorizationCodeGrant({ code, codeVerifier, timeoutMs }) {
      const form = {
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUri,
        ...(codeVerifier !== undefined && { code_verifier: codeVerifier })
      }
      return tokenRequest(form, timeoutMs)
    },
    refreshTokenGrant({ refreshToken, scope, timeoutMs }) {
      const form = { grant_type: 'refresh_token', refresh_token: refreshToken, ...(scope && { scope }) }
      return tokenRequest(form, timeoutMs)
    },
    async userInfo(accessToken, subject) {
      const url = await endpoint('userinfoEndpoint')
      const unusable = (detail: string) => new ProviderError('userinfo', 'invalid_response', detail)
      if (url === undefined) throw unusable('the provider has no user info endpoint')
      const headers = { authorization: `Bearer ${accessToken}` }
      const response = await transport.call({ endpoint: 'userinfo', url, headers })
      if (response.status !== 200) throw failure('userinfo', response)
      const { json, jwt } = response
      const userInfo = jwt === undefined ? json : userInfoOf(jwt, { issuer, clientId }, unusable)
      if (!isJsonObject(userInfo)) throw unusable('the response is not a JSON object')
      if (subject !== undefined && userInfo.sub !== subject) throw unusable('its sub is not that of the login')
      return userInfo
    },
    async signingKeys() {
      const { jwksUri: url } = await metadata()
      const unusable = (detail: string) => new ProviderError('jwks', 'invalid_response', detail)
      if (url === undefined) throw unusable('the discovery document has no usable jwks_uri')
      const response = await transport.call({ endpoint: 'jwks', url, isSentOnce: true })
      if (response.status !== 200) throw failure('jwks', response)
      const keys = isJsonObject(response.json) ? response.json.keys : undefined
      if (!Array.isArray(keys) || !keys.every(isJsonObject)) throw unusable('the response is not a JWK Set')
      return { keys: keys as unknown[] as JWK[] }
    },
    async revokeRefreshToken(refreshToken) {
      const started = performance.now()
      for (let attempt = 1; ; attempt++) {
        // All attempts together have one time limit.
        const left = REVOCATION_TIMEOUT_MS - (performance.now() - started)
        const limits = { timeoutMs: Math.max(1, Math.round(left)), onNewConnection: attempt > 1 }
        try {
          const response = await requestRevocation(refreshToken, limits)
          if (response === undefined || response.status === 200) return
          throw failure('revocation', response)
        } catch (error) {
          if (attempt === REVOCATION_ATTEMPTS || !mayRepeatRevocation(error)) throw error
        }
        await pause(REVOCATION_PAUSE_MS)
      }
    },
    replaceCredentials(fresh) {
      clientSecret = fresh.clientSecret
      signingKey = signingKeyOf(fresh)
      basicCredentials = undefined
    }
  }
}

interface AuthorizationRequest {
  readonly scope: string
  readonly state: string
  readonly nonce: string | undefined
  /** Replaces the `prompt` of `platform.authorizationParams`, unless it is undefined. */
  readonly prompt: string | undefined
  /** The S256 code challenge (RFC 7636 section 4.2), or undefined if PKCE is disabled. */
  readonly codeChallenge: string | undefined
}

interface CodeGrant {
  readonly code: string
  readonly codeVerifier: string | undefined
  /** The time limit in milliseconds. The default is the limit for all calls to the provider. */
  readonly timeoutMs?: number | undefined
}

interface RefreshGrant extends Pick<CodeGrant, 'timeoutMs'> {
  readonly refreshToken: string
  /** If undefined, the request names no scopes. */
  readonly scope: string | undefined
}

/** Adds the parameters of the operator. A parameter that the URL of the endpoint already has keeps its value. */
function addParams(url: URL, params: Readonly<Record<string, string>> = {}): void {
  for (const [name, value] of Object.entries(params)) {
    if (!url.searchParams.has(name)) url.searchParams.append(name, value)
  }
}

/** Encodes a string as application/x-www-form-urlencoded (RFC 6749 appendix B). */
function formEncoded(value: string): string {
  return new URLSearchParams({ '': value }).toString().slice(1)
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
