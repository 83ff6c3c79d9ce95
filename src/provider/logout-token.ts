/**
 * Checks the logout tokens of the identity provider (OpenID Connect Back-Channel Logout section 2.6). Anybody can send a
 * logout token to this server, so its signature is checked. This file imports the package jose, so it is loaded only if the
 * setting `platform.backchannelLogout` is on.
 */
import { compactVerify, createLocalJWKSet, errors } from 'jose'
import { type Clock, startStopwatch } from '../base/clock.js'
import { isJsonObject } from '../base/json.js'
import type { IdentityProvider } from './client.js'
import { CLOCK_LEEWAY_SECONDS, isIdentifier, readJwt } from './id-token.js'
import type { ProviderMetadata } from './metadata.js'
import { UnknownKeyError } from './provider-error.js'

export class UnusableLogoutTokenError extends Error {
  /** The name of the invalid claim, or of another invalid part of the token. */
  readonly reason: string

  constructor(reason: string) {
    super(`the logout token cannot be used: ${reason}`)
    this.name = 'UnusableLogoutTokenError'
    this.reason = reason
  }
}

export interface LogoutTokenOptions {
  readonly idp: Pick<IdentityProvider, 'metadata' | 'signingKeys'>
  readonly clientId: string
  readonly clock: Clock
}

/** A logout token is rejected if its `iat` is further in the past than this. */
const MAX_AGE_SECONDS = 600

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
// OpenID Connect Back-Channel Logout section 2.6 rule 2 forbids `none`. HMAC algorithms are not in the list, because
// their key would be the client secret, which is not in the JWK Set.
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')
// Section 2.4 recommends `logout+jwt`. Providers that are older than the standard send `JWT` or no type.
const TYPES: readonly unknown[] = [undefined, 'jwt', 'logout+jwt', 'application/logout+jwt']

export function createLogoutTokenCheck({ idp, clientId, clock }: LogoutTokenOptions) {
  const keys = createKeyCache(idp, clock)
  const metadata = retriedSparingly(clock, MIN_DISCOVERY_RETRY_MS, idp.metadata)

  /**
   * Returns the checked claims of a logout token. At least one of `sid` (the login session at the provider) and `sub`
   * is set. `jti` is the unique id of the token. `iat` is the time of issue on the clock of the provider, in seconds
   * since the epoch.
   * @throws UnusableLogoutTokenError if the token violates a rule of section 2.6, or cannot be verified
   * @throws UnknownKeyError if the key of the token is unknown, and the keys may not be requested again yet
   * @throws ProviderError if the metadata or the keys of the provider cannot be read
   */
  return async function checkLogoutToken(token: string) {
    const { header, claims } = readJwt(token)
    check(header !== undefined && claims !== undefined, 'malformed')
    // A token with a critical extension is rejected, because the extension may change what is signed (RFC 7797), and no
    // logout token needs such an extension.
    check(header.crit === undefined, 'malformed')
    check(ALGORITHMS.includes(String(header.alg)), 'alg')
    check(TYPES.includes(typeof header.typ === 'string' ? header.typ.toLowerCase() : header.typ), 'typ')
    const provider = await metadata()
    // The claims are checked before the signature. This check costs less, and a token with wrong claims must not cause
    // a request for keys.
    const checked = checkClaims(claims, provider)
    await checkSignature(token, header.kid !== undefined, keys)
    return checked
  }

  /**
   * Checks rules 3 to 7 of section 2.6, and that the token has a `jti` (section 2.4). The caller must accept each `jti`
   * only once.
   */
  function checkClaims(claims: Readonly<Record<string, unknown>>, { issuer }: ProviderMetadata) {
    const nowSeconds = clock.now() / 1000
    const { iss, aud, iat, exp, nbf, jti, sid, sub, events } = claims
    check(isIdentifier(iss) && iss === issuer, 'iss')
    check((Array.isArray(aud) ? aud : [aud]).includes(clientId), 'aud')
    check(typeof iat === 'number', 'iat')
    check(iat - CLOCK_LEEWAY_SECONDS <= nowSeconds && iat + MAX_AGE_SECONDS >= nowSeconds, 'iat')
    // Section 2.4 requires `exp`, but Hydra and authentik omit it. `iat` above already limits the age of the token, and the caller
    // accepts each `jti` only once.
    check(exp === undefined || (typeof exp === 'number' && exp + CLOCK_LEEWAY_SECONDS >= nowSeconds), 'exp')
    // RFC 7519 section 4.1.5.
    check(nbf === undefined || (typeof nbf === 'number' && nbf - CLOCK_LEEWAY_SECONDS <= nowSeconds), 'nbf')
    check(isIdentifier(jti), 'jti')
    check(sid === undefined || isIdentifier(sid), 'subject')
    check(sub === undefined || isIdentifier(sub), 'subject')
    check(sid !== undefined || sub !== undefined, 'subject')
    check(isJsonObject(events) && Object.hasOwn(events, EVENT) && isJsonObject(events[EVENT]), 'events')
    // An ID token has a nonce. Without this rule, an ID token could be used as a logout token.
    check(!Object.hasOwn(claims, 'nonce'), 'nonce')
    return { iss, sid, sub, jti, iat }
  }
}

function check(isValid: boolean, reason: string): asserts isValid {
  if (!isValid) throw new UnusableLogoutTokenError(reason)
}

async function checkSignature(token: string, hasKid: boolean, keys: ReturnType<typeof createKeyCache>): Promise<void> {
  const earlierRequests = keys.requests()
  let known = await keys.current()
  for (;;) {
    try {
      await verify(token, known.find)
      return
    } catch (error) {
      // If a token without `kid` has an unknown key, jose reports only that no known key verifies the signature.
      const isUnknownKey =
        error instanceof errors.JWKSNoMatchingKey || (error instanceof errors.JWSSignatureVerificationFailed && !hasKid)
      // If the keys were requested after the token had arrived, but do not contain the key of the token, the token is
      // forged.
      if (!isUnknownKey || known.request > earlierRequests) throw unusable(error)
    }
    known = await keys.reloaded()
  }
}

async function verify(token: string, keys: Keys): Promise<void> {
  const options = { algorithms: ALGORITHMS }
  try {
    await compactVerify(token, keys, options)
  } catch (error) {
    // For a key that jose cannot use, such as an RSA key with fewer than 2048 bits, jose throws errors that are not a
    // JOSEError. Such errors must not cause status 500, because anybody can name such a key in a token.
    if (!(error instanceof errors.JOSEError)) throw new UnusableLogoutTokenError('unknown_key')
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
    // A token without `kid` may have been signed with any of these keys.
    for await (const key of error) {
      const isValid = await compactVerify(token, key, options).then(
        () => true,
        () => false
      )
      if (isValid) return
    }
    throw new errors.JWSSignatureVerificationFailed()
  }
}

/** Converts an error of the package `jose` to an UnusableLogoutTokenError. Returns other errors unchanged, such as those of the provider. */
function unusable(error: unknown): unknown {
  if (!(error instanceof errors.JOSEError)) return error
  if (error instanceof errors.JWKSNoMatchingKey) return new UnusableLogoutTokenError('unknown_key')
  if (error instanceof errors.JWSInvalid) return new UnusableLogoutTokenError('malformed')
  return new UnusableLogoutTokenError('signature')
}

type Keys = ReturnType<typeof createLocalJWKSet>

// The keys are requested again after this time, so a key that the provider has withdrawn is accepted for at most this long.
const MAX_KEY_AGE_MS = 600_000
// The minimum time between two requests for the keys, also if the first one fails. Without this limit, forged tokens could make
// this server call the provider again and again. If the provider begins to use a new key within this time, it has to send its
// logout token again later.
const MIN_RELOAD_MS = 30_000
// The minimum time between a failed request for the discovery document and the next request. Logins read this document too, so it
// is soon known.
const MIN_DISCOVERY_RETRY_MS = 5000

function createKeyCache(idp: Pick<IdentityProvider, 'signingKeys'>, clock: Clock) {
  let known: { readonly find: Keys; readonly request: number; readonly ageMs: () => number } | undefined
  let requests = 0
  let sinceRequestMs = () => Number.POSITIVE_INFINITY
  let isLoading = false

  const load = retriedSparingly(clock, MIN_RELOAD_MS, async () => {
    requests++
    sinceRequestMs = startStopwatch(clock)
    isLoading = true
    try {
      // jose checks a key only when a token needs it.
      const find = createLocalJWKSet(await idp.signingKeys())
      known = { find, request: requests, ageMs: sinceRequestMs }
      return known
    } finally {
      isLoading = false
    }
  })

  return {
    /** The number of requests for keys so far, including a request in progress. */
    requests: () => requests,
    /**
     * Returns the keys, and the number of the request that returned them. Requests the keys if none are known, or if
     * they are old.
     */
    async current() {
      return known && known.ageMs() < MAX_KEY_AGE_MS ? known : load()
    },
    /**
     * Requests the keys again, because they do not contain the key of a token. If a request is in progress, returns its
     * keys.
     * @throws UnknownKeyError if the last request was too recent
     */
    async reloaded() {
      const waitMs = MIN_RELOAD_MS - sinceRequestMs()
      if (waitMs > 0 && !isLoading) throw new UnknownKeyError(Math.ceil(waitMs / 1000))
      return load()
    }
  }
}

/**
 * Returns a function that sends a request. Concurrent calls share one request. After a failure, the function rejects
 * with the same error until `minRetryMs` milliseconds have passed since the start of the failed request. Anybody can send
 * logout tokens, so logout tokens must not cause a failed request again and again.
 */
function retriedSparingly<T>(clock: Clock, minRetryMs: number, request: () => Promise<T>): () => Promise<T> {
  let inProgress: Promise<T> | undefined
  let failure: { readonly error: unknown; readonly sinceRequestMs: () => number } | undefined

  async function send(): Promise<T> {
    const sinceRequestMs = startStopwatch(clock)
    failure = undefined
    try {
      return await request()
    } catch (error) {
      failure = { error, sinceRequestMs }
      throw error
    } finally {
      inProgress = undefined
    }
  }

  return async function requestSparingly() {
    if (failure && failure.sinceRequestMs() < minRetryMs) throw failure.error
    inProgress ??= send()
    return inProgress
  }
}
