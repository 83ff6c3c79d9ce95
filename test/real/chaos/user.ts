// A simulated user with one browser and several tabs. Pages request the profile and the token, tabs are closed during
// a request, and the user logs out and in again. Every response is checked.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser, BrowserResponse } from '../../helpers/browser.js'
import { createRandom } from '../../helpers/random.js'
import { openCallback, startLogin } from '../../helpers/server.js'
import { type Grant, nameOf, type Provider } from './provider.js'
import { PROXY_HEADER } from './proxy.js'
import { type Mode, ORIGIN, tokenPath } from './stage.js'
import type { Tally } from './tally.js'
import type { Verdict } from './verdict.js'

interface UserOptions {
  readonly seed: number
  readonly tabs: number
  readonly mode: Mode
  readonly browser: Browser
  readonly provider: Provider
  readonly tokenLifetimeMs: number
  readonly tally: Tally
  judge(grant: Grant | undefined): Verdict
}

export interface User {
  signIn(): Promise<void>
  /** Uses all tabs until hasEnded() returns true. */
  live(hasEnded: () => boolean): Promise<void>
  /**
   * Repeats a request until the session is served or is known to have ended. Resolves with false if the time passes
   * first.
   */
  isAnswered(withinMs: number): Promise<boolean>
}

interface Session {
  readonly grant: Grant | undefined
  state: 'live' | 'left' | 'gone'
}

// After this time, a request has long ended.
const KEEP_MS = 60_000
const MAX_THOUGHT_MS = 4000
const CLOSED_TABS = 0.05
const LOGOUTS = 0.01

export function createUser(options: UserOptions): User {
  const { mode, tabs, browser, provider, tally, tokenLifetimeMs } = options
  const random = createRandom(options.seed)
  let session: Promise<Session> = Promise.reject(new Error('No user signed in yet.'))
  session.catch(() => {})
  let inFlight = 0
  const phaseMs = random() * tokenLifetimeMs

  async function logIn(): Promise<Session> {
    for (;;) {
      try {
        const callbackUrl = await startLogin(browser)
        const { statusCode } = await openCallback(browser, callbackUrl)
        if (statusCode === 302) {
          tally.sessions++
          return {
            grant: provider.book.grantOfCode(new URL(callbackUrl).searchParams.get('code') ?? ''),
            state: 'live'
          }
        }
      } catch {
        // The response was lost, or no server was running.
      }
      tally.failedLogins++
      await pause(100 + random() * 200)
    }
  }

  // Waits for the open requests first, because a late response to the old session would delete the cookies of the new
  // one, as in any browser.
  function logInAgain(): void {
    session = (async () => {
      while (inFlight > 0) await pause(10)
      return logIn()
    })()
  }

  async function ask(path: string, of: Session, signal?: AbortSignal): Promise<BrowserResponse | undefined> {
    inFlight++
    tally.requests++
    const started = performance.now()
    try {
      const response = await browser.fetch(path, signal ? { signal } : {})
      tally.statuses.set(response.statusCode, (tally.statuses.get(response.statusCode) ?? 0) + 1)
      look(path, response, of, performance.now() - started)
      return response
    } catch {
      tally.unanswered++
      return undefined
    } finally {
      inFlight--
    }
  }

  function look(path: string, response: BrowserResponse, of: Session, durationMs: number): void {
    const { statusCode, headers } = response
    const isProfile = path.endsWith('/profile')
    const complain = (what: string) => tally.faults.push(`${path}: ${what}`)
    if (headers[PROXY_HEADER]) return
    if (of.state === 'live' && statusCode === 503) tally.refused.add(user)
    switch (statusCode) {
      case 200: {
        const { name, access_token: accessToken } = response.json<{ name?: string; access_token?: string }>()
        if (isProfile && name !== nameOf(of.grant?.id)) complain(`the name of ${name} for ${nameOf(of.grant?.id)}`)
        if (!isProfile && provider.book.grantOfAccessToken(accessToken ?? '') !== of.grant?.id)
          complain('not their token')
        if (of.state === 'gone') complain('a login that had ended was served again')
        return
      }
      case 401:
        // The server keeps a newer session for this time for requests that still have the old cookie. A later request gets
        // 401, and the cookie in the browser stays. If the login is lost, the next request shows it.
        if (of.state !== 'live' || durationMs > KEEP_MS) return
        of.state = 'gone'
        tally.gone.push(options.judge(of.grant))
        return
      case 503:
        if (!(Number(headers['retry-after']) >= 1)) complain('503 without Retry-After')
        return
      case 502:
      case 504:
        if (!isProfile) complain(String(statusCode))
        return
      default:
        complain(String(statusCode))
    }
  }

  async function leave(of: Session): Promise<void> {
    of.state = 'left'
    tally.logouts++
    inFlight++
    try {
      const { statusCode } = await browser.navigate('/api/auth/logout', { from: ORIGIN })
      if (statusCode !== 302) tally.faults.push(`logout: ${statusCode}`)
    } catch {
      tally.unanswered++
    } finally {
      inFlight--
    }
  }

  // In half of the cases all tabs send their requests when the token has just expired, as pages do that count down its
  // lifetime.
  function thoughtMs(): number {
    if (random() < 0.5) return random() * MAX_THOUGHT_MS
    const periodMs = tokenLifetimeMs + 100
    return periodMs - ((performance.now() + phaseMs) % periodMs)
  }

  async function useTab(hasEnded: () => boolean): Promise<void> {
    while (!hasEnded()) {
      await pause(thoughtMs())
      const current = await session
      if (hasEnded()) return
      const signal = random() < CLOSED_TABS ? AbortSignal.timeout(Math.ceil(random() * 100)) : undefined
      if (random() < LOGOUTS && current.state === 'live') await leave(current)
      else if (mode === 'single') await ask('/api/auth/profile', current, signal)
      else await openPage(current, signal)
      if (current.state !== 'live' && (await session) === current) logInAgain()
    }
  }

  async function openPage(current: Session, signal: AbortSignal | undefined): Promise<void> {
    const asked = [ask('/api/auth/token', current, signal)]
    if (random() < 0.3) asked.push(ask('/api/auth/profile', current, signal))
    await Promise.all(asked)
  }

  const user: User = {
    async signIn() {
      session = logIn()
      await session
    },
    async live(hasEnded) {
      await Promise.all(Array.from({ length: tabs }, () => useTab(hasEnded)))
    },
    async isAnswered(withinMs) {
      const deadline = performance.now() + withinMs
      const current = await session
      while (current.state === 'live' && performance.now() < deadline) {
        const response = await ask(tokenPath(mode), current)
        if (response?.statusCode === 200) return true
        await pause(200)
      }
      return current.state !== 'live'
    }
  }
  return user
}
