// Redis is killed under load and restarts without data. Requests that need a refresh meanwhile get 503 with
// Retry-After.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from '../../helpers/browser.js'
import { eachOf } from './each-of.js'
import { signIn } from './logins.js'
import { ask, poll } from './poller.js'
import type { Report } from './report.js'
import { createScope } from './scope.js'
import { type Mode, type Stage, setStage, tokenPath } from './stage.js'
import { countEach, spread } from './tally.js'

const PROCESSES = 4
const TOKEN_LIFETIME_SECONDS = 3
const CALM_MS = 3000
const EVERY_MS = 500
const MAX_DELAY_MS = 6000
const RECOVERED_WITHIN_MS = 3000
const SERVED_WITHIN_MS = 30_000

export interface RedisOutageOptions {
  readonly seed: number
  readonly mode: Mode
  readonly people: number
  readonly outageSeconds: number
}

export async function redisOutage(report: Report, options: RedisOutageOptions): Promise<void> {
  const { seed, mode, people, outageSeconds } = options
  report.title(`Redis killed under load for ${outageSeconds} s: ${PROCESSES} processes, ${people} people, ${mode} mode`)
  const scope = createScope()
  try {
    const stage = await setStage(scope, { seed, mode, processes: PROCESSES, withRedis: true, timeLimitMs: 10_000 })
    stage.provider.idp.settings.accessTokenLifetimeSeconds = TOKEN_LIFETIME_SECONDS
    const browsers = Array.from({ length: people }, () => stage.newBrowser())
    await eachOf(browsers, browser => signIn(browser))

    let hasEnded = false
    const polling = browsers.map(browser =>
      poll(browser, { path: tokenPath(mode), everyMs: EVERY_MS, hasEnded: () => hasEnded })
    )
    await pause(CALM_MS)
    const killedAt = performance.now()
    await stage.redis?.kill()
    await pause(outageSeconds * 1000)
    await stage.redis?.restart()
    const restartedAt = performance.now()
    await everyoneUses(stage, 'redis', restartedAt + 10 * RECOVERED_WITHIN_MS)
    const recoveredMs = Math.round(performance.now() - restartedAt)
    await pause(CALM_MS)
    hasEnded = true
    const answers = (await Promise.all(polling)).flat()

    const before = spread(answers.filter(({ at, durationMs }) => at + durationMs < killedAt).map(durationOf))
    const after = spread(answers.filter(({ at, durationMs }) => at + durationMs >= killedAt).map(durationOf))
    const unwanted = answers.filter(
      ({ status, retryAfter }) => status !== 200 && !(status === 503 && Number(retryAfter) >= 1)
    )
    const back = await Promise.all(browsers.map(browser => isServed(browser, tokenPath(mode))))
    const lost = back.filter(is => !is).length
    const reuses = stage.provider.idp.reuses.length
    report.figures({
      answers: countEach(answers.map(({ status }) => String(status))),
      'provider calls': stage.provider.refreshCalls,
      'reuses seen by the provider': reuses
    })
    report.figures({
      'ms before: median': before.median,
      p99: before.p99,
      longest: before.longest,
      'after the kill: median': after.median,
      'p99 ': after.p99,
      'longest ': after.longest
    })
    report.figures({
      'longest delay added, ms': Math.max(0, after.longest - before.longest),
      'ms until every process used Redis again': recoveredMs
    })
    report.check(
      'every answer is 200, or 503 with Retry-After',
      unwanted.length === 0,
      countEach(unwanted.map(({ status }) => String(status)))
    )
    report.check('no login lost', lost === 0, String(lost))
    report.check('no token was used twice', reuses === 0, String(reuses))
    report.check('the delay is bounded', after.longest <= MAX_DELAY_MS, `${after.longest} ms`)
    report.check('Redis is used again soon', recoveredMs <= RECOVERED_WITHIN_MS, `${recoveredMs} ms`)
    report.row({ failure: `Redis killed under load for ${outageSeconds} s (${mode})`, logins: people, lost })
  } finally {
    await scope.close()
  }
}

function durationOf({ durationMs }: { readonly durationMs: number }): number {
  return durationMs
}

/** Repeats the request until the answer is 200 or 401. Resolves with true for 200. */
async function isServed(browser: Browser, path: string): Promise<boolean> {
  const deadline = performance.now() + SERVED_WITHIN_MS
  while (performance.now() < deadline) {
    const { status } = await ask(browser, path)
    if (status === 200 || status === 401) return status === 200
    await pause(500)
  }
  return false
}

/** Waits until `/readyz` of every process reports this store, or until the deadline. */
async function everyoneUses({ fleet }: Stage, store: string, deadline: number): Promise<void> {
  for (const { url } of fleet.replicas) {
    while (performance.now() < deadline) {
      const answer = (await (await fetch(`${url}/readyz`)).json()) as { store?: string }
      if (answer.store === store) break
      await pause(20)
    }
  }
}
