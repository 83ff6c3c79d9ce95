// Simulated users of the application, without pause. Each has two tabs that send requests in parallel.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from '../../helpers/browser.js'
import { signIn } from '../../helpers/server.js'

export interface Crowd {
  readonly requests: number
  /** Every failed request and every status other than 200 and 401. */
  readonly errors: readonly string[]
  /** The number of answers with status 401. */
  readonly loggedOut: number
  /** Waits until every session has been refreshed. */
  everyoneRefreshed(): Promise<void>
  stop(): Promise<void>
}

const pages = ['/api/auth/token', '/api/auth/profile', '/'] as const

/**
 * @param browsers one for each user. They sign in first.
 * @param visitor signs in, requests the profile, signs out, and repeats this until the end.
 */
export async function letIn(browsers: readonly Browser[], visitor: Browser): Promise<Crowd> {
  const errors: string[] = []
  let requests = 0
  let loggedOut = 0
  let isOver = false

  async function ask(browser: Browser, path: string): Promise<void> {
    requests += 1
    const answer = await browser.fetch(path).catch((error: Error) => error)
    if (answer instanceof Error) errors.push(`${path}: ${answer.message}`)
    else if (answer.statusCode === 401) loggedOut += 1
    else if (answer.statusCode !== 200) errors.push(`${path}: ${answer.statusCode} ${answer.text().slice(0, 200)}`)
  }

  async function live(browser: Browser): Promise<void> {
    for (let turn = 0; !isOver; turn += 1) {
      const page = pages[turn % pages.length] ?? '/'
      await Promise.all([ask(browser, page), ask(browser, '/api/auth/token')])
      await pause(30)
    }
  }

  async function comeAndGo(browser: Browser): Promise<void> {
    while (!isOver) {
      requests += 3
      await signIn(browser).catch((error: Error) => errors.push(`signing in: ${error.message}`))
      await ask(browser, '/api/auth/profile')
      const { statusCode } = await browser.navigate('/api/auth/logout')
      if (statusCode !== 302) errors.push(`signing out: ${statusCode}`)
      await pause(30)
    }
  }

  await Promise.all(browsers.map(browser => signIn(browser)))
  const lives = [...browsers.map(live), comeAndGo(visitor)]
  return {
    get requests() {
      return requests
    },
    get loggedOut() {
      return loggedOut
    },
    errors,
    async everyoneRefreshed() {
      const before = browsers.map(sessionOf)
      while (browsers.some((browser, index) => sessionOf(browser) === before[index])) await pause(50)
    },
    async stop() {
      isOver = true
      await Promise.all(lives)
    }
  }
}

function sessionOf(browser: Browser): string | undefined {
  return browser.cookies.all().find(({ name }) => name === 'platform_session')?.value
}
