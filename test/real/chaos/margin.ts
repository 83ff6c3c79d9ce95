// Redis goes down while the access tokens are still valid but the refresh margin says to refresh them. The servers must
// answer with these tokens.
import { setTimeout as pause } from 'node:timers/promises'
import type { Report } from './report.js'
import type { Mode } from './stage.js'
import { trial } from './trial.js'

export interface MarginOptions {
  readonly mode: Mode
  /** The remaining lifetime of the tokens when Redis goes down, in seconds. */
  readonly validSeconds: number
}

const EVERY_MS = 500
const UNNOTICED_MS = 1500

export function margin(report: Report, { mode, validSeconds }: MarginOptions): Promise<void> {
  const marginSeconds = validSeconds + 1
  // The servers limit the margin to half of the token's lifetime.
  const tokenLifetimeSeconds = 2 * marginSeconds
  const options = {
    failure: `A margin is set, tokens are valid for ${validSeconds} s more, Redis is down`,
    mode,
    logins: 6,
    tokenLifetimeSeconds,
    waitMs: 0,
    environment: () => ({ PLATFORM_AUTH_REFRESH_MARGIN: String(marginSeconds) })
  }
  return trial(report, options, async ({ stage, logins }) => {
    const signedInAt = performance.now()
    const until = (seconds: number) => pause(Math.max(0, signedInAt + seconds * 1000 - performance.now()))
    await until(marginSeconds - 1)
    await stage.redis?.kill()
    await until(tokenLifetimeSeconds - validSeconds)
    const before = logins.answers.length
    const asked: Promise<unknown>[] = []
    // The last requests are sent a second before the first token expires.
    while (performance.now() < logins.beganAt + (tokenLifetimeSeconds - 1.5) * 1000) {
      asked.push(logins.askEach(0), logins.askEach(1))
      await pause(EVERY_MS)
    }
    await Promise.all(asked)
    const answers = logins.answers.slice(before)
    const refused = answers.filter(({ status }) => status !== 200).length
    const longest = Math.round(Math.max(...answers.map(({ durationMs }) => durationMs)))
    report.check(
      'sessions with valid tokens are served',
      refused === 0 && answers.length > 0,
      `${refused} of ${answers.length} answers were not 200`
    )
    report.check('sessions with valid tokens are served without delay', longest <= UNNOTICED_MS, `${longest} ms`)
    await until(tokenLifetimeSeconds + 0.1)
    await Promise.all([logins.askEach(0), logins.askEach(1)])
    await stage.redis?.restart()
  })
}
