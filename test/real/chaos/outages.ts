// The provider or Redis fails for a while, while the pages of all users send requests at regular intervals. The figures show
// what the users notice.
import { setTimeout as pause } from 'node:timers/promises'
import type { Browser } from '../../helpers/browser.js'
import { eventually } from '../../helpers/eventually.js'
import type { Play } from '../suite.js'
import { fine, unspent } from './calls.js'
import { type Login, logOut, signInAll } from './logins.js'
import { type Answer, poll } from './poller.js'
import type { Provider } from './provider.js'
import { type Options, type Stage, tokenPath } from './stage.js'
import { countEach, type Spread, spread } from './tally.js'
import { trial } from './trial.js'

const MODE = 'dual'
const PATH = tokenPath(MODE)
const CALM_MS = 3000
const PROVIDER_POLL_MS = 1000
// A busy machine delays all requests. So the requests of active sessions are compared with simultaneous requests that need no
// session: their median may be half as long again, and 50 ms more.
const UNNOTICED_FACTOR = 1.5
const UNNOTICED_MS = 50

/** The provider fails for a while. Users with valid tokens should not notice it, and the others must keep their login. */
export function providerOutage({ full }: Options): Play[] {
  // As many users have valid tokens as have expired ones.
  const [count, outageSeconds] = full ? [200, 30] : [80, 4.5]
  const failure = `The provider is unavailable for ${outageSeconds} s, ${count} further logins have valid tokens`
  const expiring = { tokenLifetimeSeconds: 1, processes: 1, withRedis: false, timeLimitMs: 2000 }
  const play = trial({ failure, mode: MODE, logins: count, ...expiring }, async ({ report, stage, logins }) => {
    const { provider } = stage
    provider.idp.settings.accessTokenLifetimeSeconds = 3600
    const active = await signInAll(stage, MODE, count)
    const activePages = startPages(active.all.map(browserOf), PATH, PROVIDER_POLL_MS)
    const plainPages = startPages(Array.from({ length: count }, stage.newBrowser), '/healthz', PROVIDER_POLL_MS)
    await pause(CALM_MS)
    const callsBefore = provider.refreshCalls
    const from = performance.now()
    const expiredPages = startPages(logins.all.map(browserOf), PATH, PROVIDER_POLL_MS)
    const silence = await goAway(provider, outageSeconds * 1000)
    const until = performance.now()
    const calls = provider.refreshCalls - callsBefore
    const [activeAnswers, plainAnswers, expiredAnswers] = await Promise.all([
      activePages.end(),
      plainPages.end(),
      expiredPages.end()
    ])

    const before = spread(activeAnswers.filter(answer => answer.at < from).map(durationOf))
    const during = spread(activeAnswers.filter(({ at }) => at >= from && at < until).map(durationOf))
    const medianInSilence = (answers: readonly Answer[]) =>
      spread(answers.filter(({ at }) => at >= silence.from && at < silence.until).map(durationOf)).median
    const inSilence = medianInSilence(activeAnswers)
    const plain = medianInSilence(plainAnswers)
    const refused = expiredAnswers.filter(({ at, durationMs }) => at + durationMs < until)
    report.figures({
      'active, ms before': timesOf(before),
      during: timesOf(during),
      'while the provider is silent: median': inSilence,
      'median without a session': plain
    })
    report.figures({
      'expired, responses during': countEach(refused.map(({ status }) => String(status))),
      'Retry-After': countEach(refused.map(({ retryAfter }) => `${retryAfter} s`)),
      'provider calls during the outage': calls,
      'each second': Math.round(calls / outageSeconds)
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
      'the provider is called at most once a second for each session',
      calls <= count * (outageSeconds + 1),
      `${calls} calls`
    )
  })
  return [play]
}

/**
 * Causes three failures in turn, each for a third of the time: status 500, no response, and no connection. Returns the
 * time without responses.
 */
async function goAway(provider: Provider, ms: number): Promise<{ from: number; until: number }> {
  provider.follow(unspent['responds with 500'])
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

const REDIS_POLL_MS = 500
const LEAVING = 8
// Requests wait about 5 s for a lease, and processes use Redis again about a second after it is back. A busy machine needs longer.
const MAX_DELAY_MS = 20_000
const RECOVERED_WITHIN_MS = 15_000

/**
 * Redis is killed under load and restarts without data. Requests that need a refresh meanwhile get 503 with Retry-After, and
 * no process accepts the cookies of sessions that were logged out before.
 */
export function redisOutage({ full }: Options): Play[] {
  const [count, outageSeconds] = full ? [60, 30] : [20, 6]
  const failure = `Redis killed under load for ${outageSeconds} s`
  const options = { failure, mode: MODE, logins: count, processes: 4, tokenLifetimeSeconds: 3, waitMs: 0 } as const
  const play = trial(options, async ({ report, stage, logins, addToRow }) => {
    const { settings } = stage.provider.idp
    settings.accessTokenLifetimeSeconds = 60
    const leaving = await signInAll(stage, MODE, LEAVING)
    settings.accessTokenLifetimeSeconds = options.tokenLifetimeSeconds
    const copies = await logOut(stage, leaving, leaving.all.map(browserOf))
    const pages = startPages(logins.all.map(browserOf), PATH, REDIS_POLL_MS)
    await pause(CALM_MS)
    const killedAt = performance.now()
    await stage.redis?.kill()
    const outage = pause(outageSeconds * 1000)
    await copies.tryAll()
    await outage
    await copies.tryAll()
    await stage.redis?.restart()
    const restartedAt = performance.now()
    await everyoneUsesRedis(stage)
    const recoveredMs = Math.round(performance.now() - restartedAt)
    await copies.tryAll()
    await pause(CALM_MS)
    await copies.tryAll()
    const answers = await pages.end()

    const before = spread(answers.filter(({ at, durationMs }) => at + durationMs < killedAt).map(durationOf))
    const after = spread(answers.filter(({ at, durationMs }) => at + durationMs >= killedAt).map(durationOf))
    const unwanted = answers.filter(answer => answer.status !== 200 && !saysWhen(answer))
    report.figures({
      responses: countEach(answers.map(({ status }) => String(status))),
      'provider calls': stage.provider.refreshCalls,
      'ms before': timesOf(before),
      'after the kill': timesOf(after),
      'longest delay added, ms': Math.max(0, after.longest - before.longest),
      'ms until every process used Redis again': recoveredMs
    })
    report.check(
      'every response is 200, or 503 with Retry-After',
      unwanted.length === 0,
      countEach(unwanted.map(({ status }) => String(status)))
    )
    report.check('the delay is bounded', after.longest <= MAX_DELAY_MS, `${after.longest} ms`)
    report.check('Redis is used again soon', recoveredMs <= RECOVERED_WITHIN_MS, `${recoveredMs} ms`)
    const { letIn, tries } = copies.counts
    report.check('no copy of a logged-out session is accepted', letIn === 0 && tries > 0, `${letIn} of ${tries}`)
    addToRow({ letIn, remark: `${tries} tries with logged-out sessions` })
  })
  return [play]
}

/** Waits until `/readyz` of every process reports that it uses Redis. */
async function everyoneUsesRedis({ fleet }: Stage): Promise<void> {
  for (const { url } of fleet.replicas) {
    await eventually(async () => {
      const { redis } = (await (await fetch(`${url}/readyz`)).json()) as { redis?: string }
      return redis === 'up'
    })
  }
}

/** Each browser polls the path until `end` is called, which resolves with all responses. */
function startPages(browsers: readonly Browser[], path: string, everyMs: number): { end(): Promise<Answer[]> } {
  let hasEnded = false
  const pages = browsers.map(browser => poll(browser, { path, everyMs, hasEnded: () => hasEnded }))
  return {
    async end() {
      hasEnded = true
      return (await Promise.all(pages)).flat()
    }
  }
}

function browserOf({ browser }: Login): Browser {
  return browser
}

function saysWhen({ status, retryAfter }: Answer): boolean {
  return status === 503 && Number(retryAfter) >= 1
}

function durationOf({ durationMs }: Answer): number {
  return durationMs
}

function timesOf({ median, p99, longest }: Spread): string {
  return `median ${median}, p99 ${p99}, longest ${longest}`
}
