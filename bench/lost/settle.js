/** Asks for a user until it is known whether the user is still signed in. */
import { setTimeout as pause } from 'node:timers/promises'
import { lastOutcome, outcomeOf } from './verdict.js'

const BETWEEN_LOOKS_MS = 1000
const LONGEST_REFUSED_MS = 10_000
// mod_auth_openidc tries again 30 s after a failed refresh, and the lock of a killed process of this server ends after 65 s.
const LONGEST_WAITING_MS = 75_000

/**
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
