// Copies of session cookies that were made before a logout. No server may accept them afterwards.
import type { Browser } from '../helpers/browser.js'
import { direct, type Logins } from './logins.js'
import { ORIGIN, type Stage } from './stage.js'

export interface Copies {
  /** Sends each copy to every process except the one that did the logout. */
  tryAll(): Promise<void>
  /** How often a copy was accepted. */
  readonly letIn: number
  readonly tries: number
}

// A 502 means that the server accepted the cookie and the provider then refused the revoked token.
function isLetIn(status: number): boolean {
  return status !== 401 && status !== 503 && status !== 0
}

/** Logs these browsers out at the process in place 0. */
export async function logOut(stage: Stage, logins: Logins, browsers: readonly Browser[]): Promise<Copies> {
  const copies = browsers.map(browser => browser.clone())
  await Promise.all(
    browsers.map(async browser => {
      direct(stage, browser, 0)
      const { statusCode } = await browser.navigate('/api/auth/logout', { from: ORIGIN })
      if (statusCode !== 302) throw new Error(`The logout answered ${statusCode}.`)
    })
  )
  let letIn = 0
  let tries = 0
  return {
    async tryAll() {
      const others = stage.fleet.replicas.filter(({ place }) => place !== 0)
      for (const { place } of others) {
        const answers = await Promise.all(copies.map(copy => logins.ask(copy, place)))
        tries += answers.length
        letIn += answers.filter(({ status }) => isLetIn(status)).length
      }
    },
    get letIn() {
      return letIn
    },
    get tries() {
      return tries
    }
  }
}
