/**
 * The data of a login that the server needs again at the callback. The `state` parameter contains this data in encrypted form, so
 * the server need not store it. A login cookie with a random value, the browser id, identifies the browser. All tabs of a browser
 * share this cookie. Each login has a separate `state`.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { dottedText } from '../base/text-encoding.js'
import type { Sealer } from '../cookie/keyring.js'

export const LOGIN_MAX_AGE_SECONDS = 600

export interface LoginTransaction {
  /**
   * An id that is unique for this login. It reveals no secret, so it can be used as the name of a cell in the store. It does not
   * depend on the login cookie, so the result of the login can be found without the cookie.
   */
  readonly id: string
  readonly returnTo: string
  /** The PKCE code verifier (RFC 7636 section 4.1). */
  readonly codeVerifier: string
  /**
   * The nonce for the ID token (OpenID Connect Core section 3.1.2.1). It is also set if `openid` was not requested, but is not
   * used in that case.
   */
  readonly nonce: string
  /**
   * The random key that encrypts the session in Redis (`session.store: redis`). It is derived from the login, so a repeated
   * callback gets the same key.
   */
  readonly sessionKey: string
  /** The expiry of the `state`, in milliseconds since the epoch. */
  readonly expiresAt: number
  /** The prompt that the page requested for this login. */
  readonly prompt?: string | undefined
  /** True if the server has started this login again by itself, so that it does not do so a second time. */
  readonly isRestart?: true | undefined
}

/** The facts about a login that its `state` contains in addition. */
type LoginFacts = Pick<LoginTransaction, 'prompt' | 'isRestart'>

/**
 * A login whose `state` this deployment has created, but which cannot be completed with this request:
 * - `expired`: it began more than 10 minutes ago
 * - `unbound`: the browser sent no login cookie
 * - `otherBrowser`: the browser sent another login cookie, because it lost the right one, or because another browser began the login
 */
export interface StrayLogin extends LoginFacts, Pick<LoginTransaction, 'id' | 'returnTo' | 'expiresAt'> {
  readonly kind: 'expired' | 'unbound' | 'otherBrowser'
}

/** The result of reading the `state` at the callback. `foreign`: this deployment did not create the `state`. */
type OpenedState =
  | { readonly kind: 'valid'; readonly transaction: LoginTransaction }
  | StrayLogin
  | { readonly kind: 'foreign' }

export type LoginTransactions = ReturnType<typeof createLoginTransactions>

interface SealedState extends LoginFacts, Pick<LoginTransaction, 'returnTo'> {
  readonly seed: string
  /** SHA-256 of the browser id. */
  readonly browser: string
  readonly exp: number
}

const CONTEXT = 'state'
const RANDOM_BYTES = 32
// These characters contain 192 random bits. The key is part of the session cookie, so it should be short.
const SESSION_KEY_LENGTH = 32

/** Creates the value of a login cookie, 256 random bits. */
export function newBrowserId(): string {
  return dottedText.draw(() => randomBytes(RANDOM_BYTES))
}

export function createLoginTransactions(sealer: Sealer, now: () => number) {
  return {
    /**
     * Starts a login.
     * @param browserId the value of the login cookie, created by `newBrowserId`
     */
    begin(browserId: string, returnTo: string, facts: LoginFacts = {}) {
      const seed = randomBytes(RANDOM_BYTES).toString('base64url')
      const exp = now() + LOGIN_MAX_AGE_SECONDS * 1000
      const browser = s256(browserId)
      // JSON has no undefined, so an absent fact takes no room.
      const content = { seed, browser, returnTo, exp, ...facts }
      const state = sealer.seal(Buffer.from(JSON.stringify(content)), CONTEXT)
      const { codeVerifier, nonce } = secretsOf(seed, browserId)
      return { state, nonce, codeChallenge: s256(codeVerifier) }
    },
    open(state: string, browserId: string | undefined): OpenedState {
      const plaintext = sealer.open(state, CONTEXT)
      if (!plaintext) return { kind: 'foreign' }
      const { seed, browser, exp: expiresAt, ...facts } = JSON.parse(plaintext.toString()) as SealedState
      const login = { id: derived(seed, 'id'), ...facts, expiresAt }
      // The login cookie expires together with the `state`, so after that, a missing cookie is normal.
      if (expiresAt <= now()) return { kind: 'expired', ...login }
      if (browserId === undefined) return { kind: 'unbound', ...login }
      if (!isSame(s256(browserId), browser)) return { kind: 'otherBrowser', ...login }
      return { kind: 'valid', transaction: { ...login, ...secretsOf(seed, browserId) } }
    }
  }
}

function derived(seed: string, purpose: string): string {
  return createHmac('sha256', seed).update(purpose).digest('base64url')
}

// Derives the secrets of a login from the login cookie and the seed, so the server need not store them. The seed is in the `state`,
// which only this server can decrypt.
function secretsOf(seed: string, browserId: string): Pick<LoginTransaction, 'codeVerifier' | 'nonce' | 'sessionKey'> {
  const from = (purpose: string) => derived(seed, `${purpose}:${browserId}`)
  return {
    codeVerifier: from('code_verifier'),
    nonce: from('nonce'),
    sessionKey: from('session_key').slice(0, SESSION_KEY_LENGTH)
  }
}

function isSame(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}

/** Returns the SHA-256 of a string: the S256 challenge of a code verifier (RFC 7636 section 4.2), or the fingerprint of a browser id. */
export function s256(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
