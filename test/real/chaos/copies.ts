// Copies of session cookies that were made before a logout. No server may accept them afterwards.
import type { Browser } from '../../helpers/browser.js'
import { direct, type Logins } from './logins.js'
import { ORIGIN, type Stage } from './stage.js'

export interface Copies {
  /** Sends each copy to every process except the one that did the logout. */
  tryAll(): Promise<void>
  /** How often a copy was accepted. */
  readonly letIn: number
  readonly tries: number
}

// A 502 counts as accepted, because the server then sent the revoked token to the provider, and the provider refused it. The
// status 0 means that there was no answer.
function isLetIn(status: number): boolean {
  return status !== 401 && status !== 503 && status !== 0
}

/** Copies the cookies of these browsers, and then logs the browsers out at the process in slot 0. */
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
      const others = stage.fleet.replicas.filter(({ slot }) => slot !== 0)
      for (const { slot } of others) {
        const answers = await Promise.all(copies.map(copy => logins.ask(copy, slot)))
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
