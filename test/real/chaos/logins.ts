// The logins of a scenario. Each login is one browser with one session.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from '../../helpers/browser.js'
import { openCallback, startLogin } from '../../helpers/server.js'
import { type Answer, ask } from './poller.js'
import type { Grant } from './provider.js'
import { type Mode, ORIGIN, type Stage, tokenPath } from './stage.js'

export interface Login {
  readonly browser: Browser
  /** The record of the login at the provider. If it is undefined, the login counts as lost. */
  readonly grant: Grant | undefined
}

export type Logins = Awaited<ReturnType<typeof signInAll>>

const MAX_TRIES = 5

export async function signInAll(stage: Stage, mode: Mode, count: number) {
  const all: Login[] = []
  const answers: Answer[] = []
  const browsers = Array.from({ length: count }, stage.newBrowser)
  await eachOf(browsers, async browser => {
    const code = await signIn(browser)
    all.push({ browser, grant: stage.provider.book.grantOfCode(code) })
  })

  /** Requests the tokens from the process in that slot, or through the load balancer. Never rejects. */
  async function askOne(browser: Browser, slot?: number): Promise<Answer> {
    direct(stage, browser, slot)
    const answer = await ask(browser, tokenPath(mode))
    answers.push(answer)
    return answer
  }

  return {
    all,
    /** Every response so far. */
    answers,
    ask: askOne,
    /** Requests the tokens with the browser of every login. */
    askEach: (slot?: number) => Promise.all(all.map(({ browser }) => askOne(browser, slot)))
  }
}

/**
 * Retries a failed sign-in as a user would, because it can time out on a busy machine. Returns the code that was
 * exchanged.
 */
export async function signIn(browser: Browser): Promise<string> {
  for (let tries = 1; ; tries++) {
    const callbackUrl = await startLogin(browser)
    const { statusCode } = await openCallback(browser, callbackUrl)
    if (statusCode === 302) return new URL(callbackUrl).searchParams.get('code') ?? ''
    if (tries === MAX_TRIES) throw new Error(`The callback responded with ${statusCode}.`)
  }
}

/** Sends the next requests of this browser to the process in that slot, or through the load balancer. */
function direct(stage: Stage, browser: Browser, slot?: number): void {
  browser.connectTo(ORIGIN, slot === undefined ? stage.proxy.url : stage.fleet.inSlot(slot).url)
}

type Settled = 'alive' | 'gone' | 'unanswered'

/**
 * Checks that a login still exists: its session must be served now, and again after its access token has expired, so
 * that it must be refreshed. A response of 503 does not end a session, so the request is repeated.
 */
export async function settle(
  logins: Logins,
  { browser }: Login,
  tokenLifetimeMs: number,
  deadline: number
): Promise<Settled> {
  const first = await askUntilClear(logins, browser, deadline)
  if (first !== 'alive') return first
  await pause(tokenLifetimeMs + 100)
  return askUntilClear(logins, browser, deadline)
}

async function askUntilClear(logins: Logins, browser: Browser, deadline: number): Promise<Settled> {
  while (performance.now() < deadline) {
    const { status, retryAfter } = await logins.ask(browser)
    if (status === 200) return 'alive'
    if (status === 401) return 'gone'
    await pause(Math.min(Number(retryAfter ?? 0.2), 2) * 1000)
  }
  return 'unanswered'
}

/** Copies of session cookies that were made before a logout. No process that can know of the logout may accept them. */
export type Copies = Awaited<ReturnType<typeof logOut>>

/** Copies the cookies of these browsers, and then logs the browsers out at the process in slot 0. */
export async function logOut(stage: Stage, logins: Logins, browsers: readonly Browser[]) {
  const copies = browsers.map(browser => browser.clone())
  await Promise.all(
    browsers.map(async browser => {
      direct(stage, browser, 0)
      const { statusCode } = await browser.navigate('/api/auth/logout', { from: ORIGIN })
      if (statusCode !== 302) throw new Error(`The logout responded with ${statusCode}.`)
    })
  )
  const { fleet } = stage
  const counts = {
    /** How often a copy was accepted. */
    letIn: 0,
    /** How often a copy was accepted by a process that knows no logouts, because it was never connected to Redis. */
    letInUnknown: 0,
    tries: 0
  }
  return {
    counts,
    /** Sends each copy to every process except the one that did the logout. */
    async tryAll() {
      for (const { slot, name } of fleet.replicas.filter(({ slot }) => slot !== 0)) {
        const answers = await Promise.all(copies.map(copy => logins.ask(copy, slot)))
        counts.tries += answers.length
        for (const { status, at, durationMs } of answers) {
          if (!isLetIn(status)) continue
          if (fleet.wasNeverConnected(name, at + durationMs)) counts.letInUnknown++
          else counts.letIn++
        }
      }
    }
  }
}

// A 502 counts as accepted, because the server then sent the revoked token to the provider, and the provider refused it.
// The status 0 means that there was no response.
function isLetIn(status: number): boolean {
  return status !== 401 && status !== 503 && status !== 0
}

/** Limits how many actions run in parallel, because all of them would overload the machine. */
export async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> {
  const waiting = [...items]
  const workers = Array.from({ length: 20 }, async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await act(item)
  })
  await Promise.all(workers)
}
