/** The users of a case: they sign in, load pages, and at the end it is known who is still signed in. */
import { CookieJar } from 'tough-cookie'
import { createRandom } from './random.js'
import { createUser } from './user.js'
import { settle } from './verdict.js'

const SIGN_INS_AT_ONCE = 25
const SIGN_IN_TRIES = 3
const USER_SEED = 7919

/**
 * @param {number} count
 * @param {number} seed
 * @param {import('./user.js').Surroundings} surroundings
 */
export function createUsers(count, seed, surroundings) {
  const users = Array.from({ length: count }, (_, index) =>
    createUser(`user-${index}`, createRandom(seed + index * USER_SEED), new CookieJar(), surroundings)
  )

  async function signIn(user) {
    for (let tries = 1; ; tries++) {
      try {
        return await user.signIn()
      } catch (error) {
        if (tries === SIGN_IN_TRIES) throw error
      }
    }
  }

  return {
    async signInAll() {
      const waiting = [...users]
      const work = Array.from({ length: SIGN_INS_AT_ONCE }, async () => {
        for (let user = waiting.pop(); user; user = waiting.pop()) await signIn(user)
      })
      await Promise.all(work)
    },
    /** Resolves when the time has passed, or as soon as everyone has given up. */
    live: hasEnded => Promise.all(users.map(user => user.live(hasEnded))),
    /** The size of the `Cookie` header, of the user with the largest one. */
    cookieBytes: () => Math.max(...users.map(user => user.cookieBytes())),
    /** Asks for everyone until it is known whether the user is still signed in. */
    async settleAll() {
      const outcomes = await Promise.all(users.map(user => settle(user, surroundings.isRevoked)))
      const count = wanted => outcomes.filter(outcome => outcome === wanted).length
      const waits = users.flatMap(({ id }, index) =>
        outcomes[index] === 'signed in' ? (surroundings.tally.waits.get(id) ?? []) : []
      )
      return {
        waited: waits.length,
        longestWaitMs: Math.round(Math.max(0, ...waits)),
        signedOut: count('signed out'),
        waiting: count('waiting')
      }
    }
  }
}
