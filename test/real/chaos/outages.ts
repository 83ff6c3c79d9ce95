// The provider or Redis is unavailable under load, while pages keep requesting tokens.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from '../../helpers/browser.js'
import { fine, unspent } from './calls.js'
import { eachOf, signIn } from './logins.js'
import { type Answer, ask, poll } from './poller.js'
import type { Provider } from './provider.js'
import type { Play } from './runner.js'
import { type Options, type Stage, setStage, tokenPath } from './stage.js'
import { countEach, type Spread, spread } from './tally.js'

const MODE = 'dual'
const PATH = tokenPath(MODE)
const CALM_MS = 3000
const PROVIDER_POLL_MS = 1000
const BACK_WITHIN_MS = 5000
// A busy machine delays all requests. So the requests of active sessions are compared with simultaneous requests that need no
// session: their median may be half as long again, and 50 ms more.
const UNNOTICED_FACTOR = 1.5
const UNNOTICED_MS = 50

/** The provider fails for a while. Users with valid tokens should not notice it, and the others must keep their login. */
export function providerOutage({ full }: Options): Play[] {
  // As many users have valid tokens as have expired ones.
  const [count, outageSeconds] = full ? [200, 30] : [80, 4.5]
  const play: Play = async (report, scope) => {
    report.title(
      `the provider away for ${outageSeconds} s: ${count} active and ${count} expired sessions, ${MODE} mode`
    )
    const stage = await setStage(scope, { mode: MODE, processes: 1, withRedis: false, timeLimitMs: 2000 })
    const { provider } = stage
    const { settings } = provider.idp
    const active = Array.from({ length: count }, stage.newBrowser)
    const expired = Array.from({ length: count }, stage.newBrowser)
    settings.accessTokenLifetimeSeconds = 1
    await eachOf(expired, browser => signIn(browser))
    settings.accessTokenLifetimeSeconds = 3600
    await eachOf(active, browser => signIn(browser))
    await pause(1100)

    let hasEnded = false
    const page = { path: PATH, everyMs: PROVIDER_POLL_MS, hasEnded: () => hasEnded }
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
      'active, ms before': timesOf(before),
      during: timesOf(during),
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
      failure: `The provider is away for ${outageSeconds} s (${MODE})`,
      logins: 2 * count,
      lost: pages.filter(answers => answers.some(({ status }) => status === 401)).length
    })
    report.check(
      'the provider is called at most once a second for each session',
      calls <= count * (outageSeconds + 1),
      `${calls} calls`
    )
  }
  return [play]
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

const PROCESSES = 4
const TOKEN_LIFETIME_SECONDS = 3
const REDIS_POLL_MS = 500
const MAX_DELAY_MS = 6000
const RECOVERED_WITHIN_MS = 3000
const SERVED_WITHIN_MS = 30_000

/**
 * Redis is killed under load and restarts without data. Requests that need a refresh meanwhile get 503 with
 * Retry-After.
 */
export function redisOutage({ full }: Options): Play[] {
  const [count, outageSeconds] = full ? [60, 30] : [20, 6]
  const play: Play = async (report, scope) => {
    report.title(`Redis killed under load for ${outageSeconds} s: ${PROCESSES} processes, ${count} users, ${MODE} mode`)
    const stage = await setStage(scope, { mode: MODE, processes: PROCESSES, withRedis: true, timeLimitMs: 10_000 })
    stage.provider.idp.settings.accessTokenLifetimeSeconds = TOKEN_LIFETIME_SECONDS
    const browsers = Array.from({ length: count }, () => stage.newBrowser())
    await eachOf(browsers, browser => signIn(browser))

    let hasEnded = false
    const polling = browsers.map(browser =>
      poll(browser, { path: PATH, everyMs: REDIS_POLL_MS, hasEnded: () => hasEnded })
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
    const back = await Promise.all(browsers.map(browser => isServed(browser)))
    const lost = back.filter(is => !is).length
    const reuses = stage.provider.idp.reuses.length
    report.figures({
      answers: countEach(answers.map(({ status }) => String(status))),
      'provider calls': stage.provider.refreshCalls,
      'reuses seen by the provider': reuses
    })
    report.figures({
      'ms before': timesOf(before),
      'after the kill': timesOf(after),
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
    report.row({ failure: `Redis killed under load for ${outageSeconds} s (${MODE})`, logins: count, lost })
  }
  return [play]
}

/** Repeats the request until the answer is 200 or 401. Resolves with true for 200. */
async function isServed(browser: Browser): Promise<boolean> {
  const deadline = performance.now() + SERVED_WITHIN_MS
  while (performance.now() < deadline) {
    const { status } = await ask(browser, PATH)
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

function durationOf({ durationMs }: Answer): number {
  return durationMs
}

function timesOf({ median, p99, longest }: Spread): string {
  return `median ${median}, p99 ${p99}, longest ${longest}`
}
