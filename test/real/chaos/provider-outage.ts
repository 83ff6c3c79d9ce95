// The provider fails for a while. People with valid tokens should not notice it, and the others must keep their login.
import { setTimeout as pause } from 'node:timers/promises'
import { fine, unspent } from './calls.js'
import { eachOf } from './each-of.js'
import { signIn } from './logins.js'
import { type Answer, poll } from './poller.js'
import type { Provider } from './provider.js'
import type { Report } from './report.js'
import { createScope } from './scope.js'
import { setStage, tokenPath } from './stage.js'
import { countEach, spread } from './tally.js'

const CALM_MS = 3000
const EVERY_MS = 1000
const BACK_WITHIN_MS = 5000
// A busy machine delays all requests. So the requests of active sessions are compared with simultaneous requests that need no
// session: their median may be half as long again, and 50 ms more.
const UNNOTICED_FACTOR = 1.5
const UNNOTICED_MS = 50

export interface ProviderOutageOptions {
  readonly seed: number
  readonly processes: number
  /** The number of people with valid tokens. As many others have expired tokens. */
  readonly people: number
  readonly outageSeconds: number
}

export async function providerOutage(report: Report, options: ProviderOutageOptions): Promise<void> {
  const { seed, processes, people, outageSeconds } = options
  const mode = 'dual'
  report.title(
    `the provider away for ${outageSeconds} s: ${people} active and ${people} expired sessions, ${mode} mode`
  )
  const scope = createScope()
  try {
    const stage = await setStage(scope, { seed, mode, processes, withRedis: processes > 1, timeLimitMs: 2000 })
    const { provider } = stage
    const { settings } = provider.idp
    const active = Array.from({ length: people }, stage.newBrowser)
    const expired = Array.from({ length: people }, stage.newBrowser)
    settings.accessTokenLifetimeSeconds = 1
    await eachOf(expired, browser => signIn(browser))
    settings.accessTokenLifetimeSeconds = 3600
    await eachOf(active, browser => signIn(browser))
    await pause(1100)

    let hasEnded = false
    const page = { path: tokenPath(mode), everyMs: EVERY_MS, hasEnded: () => hasEnded }
    const activePages = active.map(browser => poll(browser, page))
    const plainPages = active.map(() => poll(stage.newBrowser(), { ...page, path: '/healthz' }))
    await pause(CALM_MS)
    const callsBefore = provider.refreshCalls
    const from = performance.now()
    const expiredPages = expired.map(browser => poll(browser, page))
    const silence = await goAway(provider, outageSeconds * 1000)
    const until = performance.now()
    const calls = provider.refreshCalls - callsBefore
    await pause(BACK_WITHIN_MS)
    hasEnded = true
    const activeAnswers = (await Promise.all(activePages)).flat()
    const plainAnswers = (await Promise.all(plainPages)).flat()
    const pages = await Promise.all(expiredPages)

    const before = spread(activeAnswers.filter(answer => answer.at < from).map(durationOf))
    const during = spread(activeAnswers.filter(({ at }) => at >= from && at < until).map(durationOf))
    const medianInSilence = (answers: readonly Answer[]) =>
      spread(answers.filter(({ at }) => at >= silence.from && at < silence.until).map(durationOf)).median
    const inSilence = medianInSilence(activeAnswers)
    const plain = medianInSilence(plainAnswers)
    const refused = pages.flat().filter(({ at, durationMs }) => at >= from && at + durationMs < until)
    const back = pages.map(answers => answers.find(({ at, status }) => at >= until && status === 200))
    const backMs = back.map(answer => (answer ? answer.at + answer.durationMs - until : Number.POSITIVE_INFINITY))
    report.figures({
      'active, ms before: median': before.median,
      p99: before.p99,
      longest: before.longest,
      'during: median': during.median,
      'p99 ': during.p99,
      'longest ': during.longest,
      'while the provider is silent: median': inSilence,
      'median without a session': plain
    })
    report.figures({
      'expired, answers during': countEach(refused.map(({ status }) => String(status))),
      'Retry-After': countEach(refused.map(({ retryAfter }) => `${retryAfter} s`)),
      'ms until the last session was served again': Math.round(Math.max(...backMs))
    })
    report.figures({
      'provider calls during the outage': calls,
      'each second': Math.round(calls / outageSeconds),
      'reuses seen by the provider': provider.idp.reuses.length
    })
    report.check(
      'active sessions are served',
      activeAnswers.every(({ status }) => status === 200)
    )
    report.check(
      'active sessions are served without delay',
      inSilence <= UNNOTICED_FACTOR * plain + UNNOTICED_MS,
      `${inSilence} ms, without a session ${plain} ms`
    )
    report.check('expired sessions get 503 with Retry-After', refused.length > 0 && refused.every(saysWhen))
    report.check(
      'after the outage all expired sessions are served',
      backMs.every(Number.isFinite),
      `${backMs.filter(ms => !Number.isFinite(ms)).length} were not`
    )
    report.row({
      failure: `The provider is away for ${outageSeconds} s (${mode})`,
      logins: 2 * people,
      lost: pages.filter(answers => answers.some(({ status }) => status === 401)).length
    })
    report.check(
      'the provider is called at most once a second for each session',
      calls <= people * (outageSeconds + 1),
      `${calls} calls`
    )
  } finally {
    await scope.close()
  }
}

/**
 * Causes three failures in turn, each for a third of the time: status 500, no answer, and no connection. Returns the time
 * without answers.
 */
async function goAway(provider: Provider, ms: number): Promise<{ from: number; until: number }> {
  provider.follow(unspent['answers 500'])
  await pause(ms / 3)
  const from = performance.now()
  provider.follow(unspent.hangs)
  await pause(ms / 3)
  const until = performance.now()
  await provider.idp.offline()
  await pause(ms / 3)
  provider.follow(fine.answers)
  await provider.idp.online()
  return { from, until }
}

function saysWhen({ status, retryAfter }: Answer): boolean {
  return status === 503 && Number(retryAfter) >= 1
}

function durationOf({ durationMs }: Answer): number {
  return durationMs
}
