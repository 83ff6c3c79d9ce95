/** Decides from the last responses whether a user is still signed in. */
import { setTimeout as pause } from 'node:timers/promises'

/**
 * - `served`: the program sent the data of the API
 * - `refused`: the program asks the user to sign in again
 * - `failed`: the program answered with an error of its own
 * - `unanswered`: no complete response
 * @typedef {'served' | 'refused' | 'failed' | 'unanswered'} Kind
 */

/** The number of responses in a row that are needed before a user counts as signed out. */
export const REPEATED = 3
const BETWEEN_LOOKS_MS = 1000
const LONGEST_REFUSED_MS = 10_000
// mod_auth_openidc tries again 30 s after a failed refresh, and the lock of a killed process of this server ends after 65 s.
const LONGEST_WAITING_MS = 75_000

/**
 * Asks for a user until it is known whether the user is still signed in. A user whose login the provider has ended, or whose
 * cookies the program has deleted, cannot be served any more. Everyone else gets more time, because a program may recover.
 * @param {ReturnType<typeof import('./user.js').createUser>} user
 * @param {(id: string) => boolean} isRevoked returns true if the provider has ended the login of this user
 * @returns {Promise<'signed in' | 'signed out' | 'waiting'>} `waiting` if the program still answers with errors at the end
 */
export async function settle(user, isRevoked) {
  const began = performance.now()
  for (let looks = 1; ; looks++) {
    const kind = await user.look()
    if (kind === 'served') return 'signed in'
    if (looks >= REPEATED && (isRevoked(user.id) || !user.hasCookies())) return 'signed out'
    const longestMs = kind === 'refused' ? LONGEST_REFUSED_MS : LONGEST_WAITING_MS
    if (performance.now() - began > longestMs) return kind === 'refused' ? 'signed out' : 'waiting'
    await pause(BETWEEN_LOOKS_MS)
  }
}

/**
 * @param {number | undefined} status undefined if there was no response
 * @returns {Kind}
 */
export function kindOf(status) {
  if (status === undefined) return 'unanswered'
  if (status === 200) return 'served'
  // A program that redirects sends the user to the login.
  if ((status >= 300 && status < 400) || [400, 401, 403].includes(status)) return 'refused'
  return 'failed'
}
