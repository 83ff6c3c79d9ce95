// Simulated users of the application, without pause. Each has a tab for each kind of page.
import { setTimeout as pause } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import type { Browser } from '../../helpers/browser.js'
import { signIn } from '../../helpers/server.js'

const PAGES = ['/api/auth/token', '/api/auth/profile', '/']
const EVERY_MS = 100

/**
 * @param browsers one for each user. They sign in first.
 * @param visitor signs in, requests the profile, signs out, and repeats this until the end.
 */
export async function letIn(browsers: readonly Browser[], visitor: Browser) {
  let hasEnded = false

  async function openTab(browser: Browser, path: string): Promise<string[]> {
    const results: string[] = []
    while (!hasEnded) {
      const status = await browser.fetch(path).then(
        ({ statusCode }) => statusCode,
        () => 0
      )
      results.push(`${path}: ${status}`)
      await pause(EVERY_MS)
    }
    return results
  }

  async function comeAndGo(): Promise<string[]> {
    const results: string[] = []
    while (!hasEnded) {
      await signIn(visitor).catch((error: Error) => results.push(`signing in: ${error.message}`))
      results.push(`/api/auth/profile: ${(await visitor.fetch('/api/auth/profile')).statusCode}`)
      const { statusCode } = await visitor.navigate('/api/auth/logout')
      if (statusCode !== 302) results.push(`signing out: ${statusCode}`)
      await pause(EVERY_MS)
    }
    return results
  }

  await Promise.all(browsers.map(browser => signIn(browser)))
  const tabs = browsers.flatMap(browser => PAGES.map(path => openTab(browser, path)))
  const lives = Promise.all([...tabs, comeAndGo()])
  return {
    /** Waits until every session has been refreshed. */
    async everyoneRefreshed() {
      const before = browsers.map(sessionOf)
      while (browsers.some((browser, index) => sessionOf(browser) === before[index])) await pause(50)
    },
    /** Closes all tabs, and checks that no request failed and no user was logged out. */
    async leaveUnnoticed(t: ExecutionContext) {
      hasEnded = true
      const results = (await lives).flat()
      t.deepEqual(new Set(results), new Set(PAGES.map(path => `${path}: 200`)))
      t.true(results.length > 200, `${results.length} requests`)
      t.log(`${results.length} requests`)
    }
  }
}

function sessionOf(browser: Browser): string | undefined {
  return browser.cookies.all().find(({ name }) => name === 'platform_session')?.value
}
