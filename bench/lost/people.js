/** The people of a case: they sign in, load pages, and at the end it is known who is still signed in. */
import { CookieJar } from 'tough-cookie'
import { createPerson } from './person.js'
import { createRandom } from './random.js'
import { settle } from './settle.js'

const SIGN_INS_AT_ONCE = 25
const SIGN_IN_TRIES = 3
const PERSON_SEED = 7919

/**
 * @param {number} count
 * @param {number} seed
 * @param {import('./person.js').Surroundings} surroundings
 */
export function createPeople(count, seed, surroundings) {
  const people = Array.from({ length: count }, (_, index) =>
    createPerson(`person-${index}`, createRandom(seed + index * PERSON_SEED), new CookieJar(), surroundings)
  )

  async function signIn(person) {
    for (let tries = 1; ; tries++) {
      try {
        return await person.signIn()
      } catch (error) {
        if (tries === SIGN_IN_TRIES) throw error
      }
    }
  }

  return {
    async signInAll() {
      const waiting = [...people]
      const work = Array.from({ length: SIGN_INS_AT_ONCE }, async () => {
        for (let person = waiting.pop(); person; person = waiting.pop()) await signIn(person)
      })
      await Promise.all(work)
    },
    /** Resolves when the time has passed, or as soon as everyone has given up. */
    live: hasEnded => Promise.all(people.map(person => person.live(hasEnded))),
    /** The size of the `Cookie` header, of the person with the largest one. */
    cookieBytes: () => Math.max(...people.map(person => person.cookieBytes())),
    /** Asks for everyone until it is known whether the person is still signed in. */
    async settleAll() {
      const began = performance.now()
      const outcomes = await Promise.all(people.map(person => settle(person, surroundings.isRevoked)))
      const count = wanted => outcomes.filter(outcome => outcome === wanted).length
      return {
        signedOut: count('signed out'),
        waiting: count('waiting'),
        settledMs: Math.round(performance.now() - began)
      }
    }
  }
}
