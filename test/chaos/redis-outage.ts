// Redis is killed under load, and comes back empty after a while.
import { setTimeout as pause } from 'node:timers/promises'
import { signIn } from '../helpers/server.js'
import { eachOf } from './each-of.js'
import { poll } from './poller.js'
import type { Report } from './report.js'
import { createScope } from './scope.js'
import { type Mode, type Stage, setStage, tokenPath } from './stage.js'
import { countEach, spread } from './tally.js'

const PROCESSES = 4
const TOKEN_LIFETIME_SECONDS = 3
const CALM_MS = 3000
const EVERY_MS = 500
const LONGEST_DELAY_MS = 6000
const RECOVERED_WITHIN_MS = 3000

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
    await everyoneUses(stage, 'redis')
    const recoveredMs = Math.round(performance.now() - restartedAt)
    await pause(CALM_MS)
    hasEnded = true
    const answers = (await Promise.all(polling)).flat()

    const before = spread(answers.filter(({ at, durationMs }) => at + durationMs < killedAt).map(durationOf))
    const after = spread(answers.filter(({ at, durationMs }) => at + durationMs >= killedAt).map(durationOf))
    const unwanted = answers.filter(({ status }) => status !== 200)
    report.figures({
      answers: countEach(answers.map(({ status }) => String(status))),
      'provider calls': stage.provider.refreshCalls,
      'reuses seen by the provider': stage.provider.idp.reuses.length
    })
    report.figures({
      'ms before: median': before.median,
      p99: before.p99,
      longest: before.longest,
      'from the kill on: median': after.median,
      'p99 ': after.p99,
      'longest ': after.longest
    })
    report.figures({
      'longest delay added, ms': Math.max(0, after.longest - before.longest),
      'ms until every process used Redis again': recoveredMs
    })
    report.check('every answer is 200', unwanted.length === 0, countEach(unwanted.map(({ status }) => String(status))))
    report.check('the delay is bounded', after.longest <= LONGEST_DELAY_MS, `${after.longest} ms`)
    report.check('Redis is used again soon', recoveredMs <= RECOVERED_WITHIN_MS, `${recoveredMs} ms`)
  } finally {
    await scope.close()
  }
}

function durationOf({ durationMs }: { readonly durationMs: number }): number {
  return durationMs
}

/** Until `/readyz` of every process names that store. */
async function everyoneUses({ fleet }: Stage, store: string): Promise<void> {
  for (const { url } of fleet.replicas) {
    for (;;) {
      const answer = (await (await fetch(`${url}/readyz`)).json()) as { store?: string }
      if (answer.store === store) break
      await pause(20)
    }
  }
}
