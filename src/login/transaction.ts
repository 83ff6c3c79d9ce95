/**
 * The data of a login that must survive until the callback. No store is needed: `state` carries the data encrypted, and
 * a small random cookie identifies the browser. All tabs share the cookie, and each login has its own state.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Sealer } from '../sealing/keyring.js'
import { codeChallengeOf } from './pkce.js'

export const LOGIN_MAX_AGE_SECONDS = 600

export interface LoginTransaction {
  /** Unique for this login and safe to use as a key. */
  readonly id: string
  readonly returnTo: string
  /** RFC 7636 section 4.1. */
  readonly codeVerifier: string
  /** OpenID Connect Core section 3.1.2.1. It is also set if `openid` was not requested. */
  readonly nonce: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

export interface StartedLogin {
  readonly state: string
  readonly codeChallenge: string
  readonly nonce: string
}

/**
 * - `foreign`: this deployment did not create the state, or another browser started the login
 * - `expired`: this deployment created the state, but it is too old
 * - `unbound`: the state is still valid, but the browser did not send the login cookie
 */
export type OpenedState =
  | { readonly kind: 'valid'; readonly transaction: LoginTransaction }
  | { readonly kind: 'expired'; readonly returnTo: string }
  | { readonly kind: 'unbound'; readonly returnTo: string; readonly startedAt: string | undefined }
  | { readonly kind: 'foreign' }

export interface LoginTransactions {
  /**
   * Starts a login.
   * @param browserId the random value that identifies this browser until its logins are complete, from newBrowserId()
   * @param startedAt the host on which the login begins, if an error page of the callback should name it
   */
  begin(browserId: string, returnTo: string, startedAt?: string): StartedLogin
  open(state: string, browserId: string | undefined): OpenedState
}

interface SealedState {
  readonly seed: string
  /** SHA-256 of the browser id. */
  readonly browser: string
  readonly returnTo: string
  readonly startedAt?: string
  readonly exp: number
}

const CONTEXT = 'state'
const RANDOM_BYTES = 32

/** Creates 256 random bits in base64url. */
export function newBrowserId(): string {
  return randomBytes(RANDOM_BYTES).toString('base64url')
}

export function createLoginTransactions(sealer: Sealer, now: () => number): LoginTransactions {
  return {
    begin(browserId, returnTo, startedAt) {
      const seed = randomBytes(RANDOM_BYTES).toString('base64url')
      const exp = now() + LOGIN_MAX_AGE_SECONDS * 1000
      const browser = fingerprintOf(browserId)
      const content: SealedState = { seed, browser, returnTo, exp, ...(startedAt !== undefined && { startedAt }) }
      const state = sealer.seal(Buffer.from(JSON.stringify(content)), CONTEXT)
      const { codeVerifier, nonce } = derive(seed, browserId)
      return { state, nonce, codeChallenge: codeChallengeOf(codeVerifier) }
    },
    open(state, browserId) {
      const plaintext = sealer.open(state, CONTEXT)
      if (!plaintext) return { kind: 'foreign' }
      const { seed, browser, returnTo, startedAt, exp } = JSON.parse(plaintext.toString()) as SealedState
      const isOurs = browserId !== undefined && isSame(fingerprintOf(browserId), browser)
      if (!isOurs && browserId !== undefined) return { kind: 'foreign' }
      // The login cookie expires together with the state, so the browser usually sends no cookie with an expired state.
      if (exp <= now()) return { kind: 'expired', returnTo }
      if (!isOurs) return { kind: 'unbound', returnTo, startedAt }
      return { kind: 'valid', transaction: { ...derive(seed, browserId), returnTo, expiresAt: exp } }
    }
  }
}

// The verifier is never stored. It is derived from the seed, which only this server can read, and from the cookie,
// which only this browser has.
function derive(seed: string, browserId: string): Pick<LoginTransaction, 'id' | 'codeVerifier' | 'nonce'> {
  const from = (purpose: string) => createHmac('sha256', seed).update(`${purpose}:${browserId}`).digest('base64url')
  return { id: from('id'), codeVerifier: from('code_verifier'), nonce: from('nonce') }
}

function fingerprintOf(browserId: string): string {
  return createHash('sha256').update(browserId).digest('base64url')
}

function isSame(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
