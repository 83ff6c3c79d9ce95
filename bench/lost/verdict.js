/** Decides from the last responses whether a user is still signed in. */
import { setTimeout as pause } from 'node:timers/promises'

/**
 * - `served`: the program sent the data of the API
 * - `refused`: the program asks the user to sign in again
 * - `failed`: the program answered with an error of its own
 * - `unanswered`: no complete response
 * @typedef {'served' | 'refused' | 'failed' | 'unanswered'} Kind
 *
 * @typedef {'signed in' | 'signed out' | 'undecided'} Outcome
 */

/** The number of responses in a row that are needed before a user counts as signed out. */
export const REPEATED = 3
const BETWEEN_LOOKS_MS = 1000
const LONGEST_REFUSED_MS = 10_000
// mod_auth_openidc tries again 30 s after a failed refresh, and the lock of a killed process of this server ends after 65 s.
const LONGEST_WAITING_MS = 75_000

/**
 * Asks for a user until it is known whether the user is still signed in.
 * @param {ReturnType<typeof import('./user.js').createUser>} user
 * @param {(id: string) => boolean} isRevoked returns true if the provider has ended the login of this user
 * @returns {Promise<'signed in' | 'signed out' | 'waiting'>}
 */
export async function settle(user, isRevoked) {
  const began = performance.now()
  const answers = []
  for (;;) {
    answers.push(await user.look())
    const outcome = outcomeOf({ answers, isRevoked: isRevoked(user.id), hasCookies: user.hasCookies() })
    if (outcome !== 'undecided') return outcome
    const limit = answers.at(-1) === 'refused' ? LONGEST_REFUSED_MS : LONGEST_WAITING_MS
    if (performance.now() - began > limit) return lastOutcome(answers)
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

/**
 * A user whose login the provider has ended cannot be served any more, whatever the program answers. A user whose cookies
 * the program has deleted cannot be recognised any more. Everyone else gets more time, because a program may recover.
 * @param {{ answers: Kind[], isRevoked: boolean, hasCookies: boolean }} end the responses after the fault has passed
 * @returns {Outcome}
 */
function outcomeOf({ answers, isRevoked, hasCookies }) {
  if (answers.includes('served')) return 'signed in'
  if (answers.length < REPEATED) return 'undecided'
  return isRevoked || !hasCookies ? 'signed out' : 'undecided'
}

/**
 * The outcome when no time is left.
 * @param {Kind[]} answers
 * @returns {'signed in' | 'signed out' | 'waiting'} `waiting` if the program still answered with errors
 */
function lastOutcome(answers) {
  if (answers.includes('served')) return 'signed in'
  return answers.at(-1) === 'refused' ? 'signed out' : 'waiting'
}
