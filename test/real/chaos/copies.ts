// Cookies of sessions that were logged out before a storm. No process that can know of these logouts may accept them.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from '../../helpers/browser.js'
import { openCallback, startLogin } from '../../helpers/server.js'
import { hasStatus } from '../programs.js'
import { type Mode, ORIGIN, type Stage, tokenPath } from './stage.js'

const MAX_TRIES = 5
/** Longer than any server may take. A server that never responds must not stop the suite. */
const MAX_ANSWER_MS = 30_000
// The tokens expire one after the other, so that at any time some of them are due for a refresh and not expired.
const LIFETIMES_SECONDS = Array.from({ length: 12 }, (_, index) => 8 + index * 2)

/** Signs in, copies the cookies, and logs out, once for each lifetime. */
export async function logOutSome({ provider, fleet, newBrowser }: Stage, mode: Mode) {
  const copies: Browser[] = []
  for (const seconds of LIFETIMES_SECONDS) {
    provider.idp.settings.accessTokenLifetimeSeconds = seconds
    const browser = newBrowser()
    await signIn(browser)
    copies.push(browser.clone())
    const { statusCode } = await browser.navigate('/api/auth/logout', { from: ORIGIN })
    if (statusCode !== 302) throw new Error(`The logout responded with ${statusCode}.`)
  }

  const accepted: { readonly process: string; readonly status: number; readonly at: number }[] = []
  let tries = 0

  async function tryOne(copy: Browser, { name, program }: Stage['fleet']['replicas'][number]): Promise<void> {
    copy.connectTo(ORIGIN, program.url)
    const response = await copy.fetch(tokenPath(mode), { signal: AbortSignal.timeout(MAX_ANSWER_MS) }).catch(() => {})
    tries++
    // A 502 counts as accepted, because the server then sent the revoked token to the provider, and the provider refused it.
    if (!response || response.statusCode === 401 || response.statusCode === 503) return
    accepted.push({ process: name, status: response.statusCode, at: performance.now() })
  }

  return {
    /** How often copies were tried, and who accepted them. */
    results: () => ({ tries, accepted }),
    /** Sends each copy to every process that is ready. Before its first connection to Redis, a process knows no logouts. */
    async tryAll() {
      for (const replica of fleet.replicas) {
        if (await isReady(replica.program.url)) await Promise.all(copies.map(copy => tryOne(copy, replica)))
      }
    }
  }
}

function isReady(url: string): Promise<boolean> {
  return hasStatus(`${url}/readyz`, 200).catch(() => false)
}

/** Retries a failed sign-in as a user would, because it can time out on a busy machine. */
async function signIn(browser: Browser): Promise<void> {
  for (let tries = 1; ; tries++) {
    const { statusCode } = await openCallback(browser, await startLogin(browser))
    if (statusCode === 302) return
    if (tries === MAX_TRIES) throw new Error(`The callback responded with ${statusCode}.`)
    await pause(tries * 1000)
  }
}
