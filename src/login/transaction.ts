/**
 * What must survive from login to callback, without a store: `state` carries it sealed, and one small random cookie
 * says which browser it belongs to. Any number of tabs share the cookie; each has its own state.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Sealer } from '../sealing/keyring.js'
import { codeChallengeOf } from './pkce.js'

export const LOGIN_MAX_AGE_SECONDS = 600

export interface LoginTransaction {
  /** Names this login and no other; safe to use as a key. */
  readonly id: string
  readonly returnTo: string
  /** RFC 7636 section 4.1. */
  readonly codeVerifier: string
  /** OpenID Connect Core section 3.1.2.1; also names the login where `openid` was not asked for. */
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
 * - `foreign`: not sealed by us, or begun in another browser
 * - `expired`: ours, and too old
 * - `unbound`: ours and in date, but its browser did not bring the login cookie along
 */
export type OpenedState =
  | { readonly kind: 'valid'; readonly transaction: LoginTransaction }
  | { readonly kind: 'expired'; readonly returnTo: string }
  | { readonly kind: 'unbound'; readonly returnTo: string; readonly startedAt: string | undefined }
  | { readonly kind: 'foreign' }

export interface LoginTransactions {
  /**
   * @param loginCookie the random value that identifies this browser until its logins are complete, from newLoginCookie()
   * @param startedAt the host under which the login begins, where an error page of the callback should name it
   */
  begin(loginCookie: string, returnTo: string, startedAt?: string): StartedLogin
  open(state: string, loginCookie: string | undefined): OpenedState
}

interface SealedState {
  readonly seed: string
  readonly browser: string
  readonly returnTo: string
  readonly startedAt?: string
  readonly exp: number
}

const CONTEXT = 'state'
const RANDOM_BYTES = 32

/** 256 random bits in base64url. */
export function newLoginCookie(): string {
  return randomBytes(RANDOM_BYTES).toString('base64url')
}

export function createLoginTransactions(sealer: Sealer, now: () => number): LoginTransactions {
  return {
    begin(loginCookie, returnTo, startedAt) {
      const seed = randomBytes(RANDOM_BYTES).toString('base64url')
      const exp = now() + LOGIN_MAX_AGE_SECONDS * 1000
      const browser = fingerprintOf(loginCookie)
      const content: SealedState = { seed, browser, returnTo, exp, ...(startedAt !== undefined && { startedAt }) }
      const state = sealer.seal(Buffer.from(JSON.stringify(content)), CONTEXT)
      const { codeVerifier, nonce } = derive(seed, loginCookie)
      return { state, nonce, codeChallenge: codeChallengeOf(codeVerifier) }
    },
    open(state, loginCookie) {
      const plaintext = sealer.open(state, CONTEXT)
      if (!plaintext) return { kind: 'foreign' }
      const { seed, browser, returnTo, startedAt, exp } = JSON.parse(plaintext.toString()) as SealedState
      const isOurs = loginCookie !== undefined && isSame(fingerprintOf(loginCookie), browser)
      if (!isOurs && loginCookie !== undefined) return { kind: 'foreign' }
      // The login cookie ends with the state, so an expired state usually comes without it.
      if (exp <= now()) return { kind: 'expired', returnTo }
      if (!isOurs) return { kind: 'unbound', returnTo, startedAt }
      return { kind: 'valid', transaction: { ...derive(seed, loginCookie), returnTo, expiresAt: exp } }
    }
  }
}

// The verifier is never stored: it takes the seed, which only we can read, and the cookie, which only this browser has.
function derive(seed: string, loginCookie: string): Pick<LoginTransaction, 'id' | 'codeVerifier' | 'nonce'> {
  const from = (purpose: string) => createHmac('sha256', seed).update(`${purpose}:${loginCookie}`).digest('base64url')
  return { id: from('id'), codeVerifier: from('code_verifier'), nonce: from('nonce') }
}

function fingerprintOf(loginCookie: string): string {
  return createHash('sha256').update(loginCookie).digest('base64url')
}

function isSame(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
