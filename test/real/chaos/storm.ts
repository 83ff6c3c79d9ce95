// A storm: many users use the application while something fails. Afterwards each of them must be served, no login may be
// lost, and no process may have accepted the cookie of a session that was logged out before.
import { setTimeout as pause } from 'node:timers/promises'
import { isFault } from '../../helpers/logs.js'
import { createRandom } from '../../helpers/random.js'
import type { Teardown } from '../../helpers/scope.js'
import type { Play, Report } from '../suite.js'
import { type Behaviour, fine } from './calls.js'
import { logOutSome } from './copies.js'
import { type Mode, type Stage, setStage } from './stage.js'
import { countEach, createTally, type Tally } from './tally.js'
import { createUser } from './user.js'
import { type Circumstances, judgeLoss, judgeReuse } from './verdict.js'

/** The options of the command line that all storms have. */
export interface Variant {
  readonly seed: number
  readonly mode: Mode
  readonly users: number
}

/** The setting `session.store`. */
export type SessionStore = 'cookie' | 'redis'

export interface StormOptions extends Variant {
  /** The name of the failure in the table of results. */
  readonly failure: string
  readonly store?: SessionStore
  readonly processes?: number
  /** The time limit of the servers' requests to the provider. */
  readonly timeLimitMs?: number
  /** Further settings of the process in that slot. */
  readonly environment?: (slot: number) => Readonly<Record<string, string>>
  /** Returns how the provider responds to refreshes. By default, it responds correctly. */
  readonly provider?: (seed: number) => Behaviour
  /** The load balancer loses this share of the responses on the way to the browsers. */
  readonly lostAnswers?: number
  /** The process in this slot can reach only an old master, whose last writes are lost, for `acceptsMs` after the start of an outage. */
  readonly cutOff?: { readonly slot: number; readonly acceptsMs: number }
}

/** What the scenarios of a suite are given. */
export type StormVariant = Omit<StormOptions, 'failure'>

/** Redis in any topology. Without a URL there is none. */
interface StormRedis {
  readonly url: string | undefined
}

export interface Load {
  readonly report: Report
  readonly stage: Stage
  readonly tally: Tally
  readonly random: () => number
  /**
   * Marks a time in which processes cannot store anything. A process that is killed in the same time may lose the tokens
   * that it received in it.
   */
  outage<T>(fault: () => Promise<T>): Promise<T>
}

const PROCESSES = 4
const TABS = 2
const TIME_LIMIT_MS = 2000
const LIFETIME_SECONDS = 4
// Requests in the last seconds of a token cause an early refresh, which must know of a logout too.
const MARGIN_SECONDS = 2
const CALM_MS = 3000
const COPIES_EVERY_MS = 300
/** On a busy machine, a process may need this long to store a response: a command of Redis may take a second. */
const STORED_MS = 1000
/** The time for which processes may store late results after an outage. */
const AFTER_OUTAGE_MS = 2000
/** Longer than the lease of a killed process lasts (65 s), plus one retry. */
const ALL_BACK_WITHIN_MS = 75_000
const MAX_STORIES = 10

/** @param openRedis starts Redis @param fault breaks something, and resolves when everything runs again */
export function storm<Redis extends StormRedis>(
  options: StormOptions,
  openRedis: (scope: Teardown) => Promise<Redis>,
  fault: (load: Load, redis: Redis) => Promise<void>
): Play {
  const { failure, seed, mode, users: count, store = 'cookie' } = options
  const title = `${failure}, session.store: ${store}, ${mode} mode, seed ${seed}`
  return async (report, scope) => {
    report.title(title)
    const redis = await openRedis(scope)
    const stage = await setStage(scope, {
      ...options,
      processes: options.processes ?? PROCESSES,
      redisUrl: redis.url,
      timeLimitMs: options.timeLimitMs ?? TIME_LIMIT_MS,
      environment: slot => ({
        PLATFORM_AUTH_SESSION_STORE: store,
        PLATFORM_AUTH_REFRESH_BEFORE_EXPIRY: String(MARGIN_SECONDS),
        ...options.environment?.(slot)
      })
    })
    const { provider, proxy } = stage
    const outages: Outage[] = []
    const circumstances = circumstancesOf(stage, outages, options)
    const copies = await logOutSome(stage, mode)
    provider.idp.settings.accessTokenLifetimeSeconds = LIFETIME_SECONDS
    const tally = createTally()
    const users = Array.from({ length: count }, (_, index) =>
      createUser({
        mode,
        tabs: TABS,
        seed: seed * 10_000 + index,
        browser: stage.newBrowser(),
        provider,
        tokenLifetimeMs: LIFETIME_SECONDS * 1000,
        tally,
        judge: grant => judgeLoss(grant, circumstances)
      })
    )
    await eachOf(users, user => user.signIn())

    let hasEnded = false
    const living = Promise.all(users.map(user => user.live(() => hasEnded)))
    const trying = (async () => {
      while (!hasEnded) {
        await copies.tryAll()
        await pause(COPIES_EVERY_MS)
      }
    })()
    await pause(CALM_MS)
    tally.refused.clear()
    provider.follow(options.provider?.(seed) ?? fine.answers)
    proxy.lose(options.lostAnswers ?? 0)
    const outage: Load['outage'] = async work => {
      const one = { from: performance.now(), until: Number.POSITIVE_INFINITY }
      outages.push(one)
      return work().finally(() => {
        one.until = performance.now() + AFTER_OUTAGE_MS
      })
    }
    const load = { report, stage, tally, outage, random: createRandom(seed + 5_000_000) }
    await fault(load, redis).finally(async () => {
      hasEnded = true
      proxy.lose(0)
      provider.follow(fine.answers)
      await Promise.all([living, trying])
    })

    const endedAt = performance.now()
    const waits = await Promise.all(
      users.map(async user => {
        const isServed = await user.isAnswered(ALL_BACK_WITHIN_MS)
        const servedAt = performance.now()
        // The session also survives the next refresh.
        await pause(LIFETIME_SECONDS * 1000 + 100)
        return isServed && (await user.isAnswered(ALL_BACK_WITHIN_MS)) ? servedAt - endedAt : undefined
      })
    )
    await copies.tryAll()
    const { tries, accepted } = copies.results()
    const remark = `${tally.requests} requests, ${tally.statuses.get(503) ?? 0} × 503`
    report.row({ failure: title, letIn: accepted.length, remark, ...reportLogins(report, stage, tally, circumstances) })
    report.figures({
      'users who got a 503': tally.refused.size,
      'ms until the last was served again after the storm': Math.round(Math.max(0, ...waits.map(ms => ms ?? 0))),
      'requests with a logged-out cookie': tries
    })
    const by = accepted.map(({ process, status, at }) => `${status} of process ${process} at ${Math.round(at)} ms`)
    report.check('no logged-out cookie is accepted', by.length === 0, by.join(', '))
    const others = waits.filter(ms => ms === undefined).length
    report.check('after the storm every user is served', others === 0, `${others} were not`)
  }
}

interface Outage {
  readonly from: number
  until: number
}

function circumstancesOf(
  { provider, fleet }: Stage,
  outages: readonly Outage[],
  { cutOff }: StormOptions
): Circumstances {
  return {
    killedAt: fleet.killedAt,
    wasStored(refreshToken) {
      const rotations = [...provider.book.grants.values()].flatMap(grant => grant.rotations)
      const rotation = rotations.find(({ issued }) => issued === refreshToken)
      const killed = rotation && fleet.killedAt(rotation.caller)
      if (!rotation || killed === undefined) return true
      return !outages.some(({ from, until }) => rotation.settledAt + STORED_MS >= from && killed <= until)
    },
    wasCutOff: (caller, at) =>
      cutOff !== undefined &&
      caller.startsWith(`${cutOff.slot}.`) &&
      outages.some(({ from }) => at >= from && at <= from + cutOff.acceptsMs)
  }
}

/** Prints what happened to the logins, and checks that none was lost. Returns the numbers for the table. */
function reportLogins(
  report: Report,
  { provider, fleet }: Stage,
  { sessions, gone, statuses, faults, ...counts }: Tally,
  circumstances: Circumstances
) {
  const goneAs = (wanted: string) => gone.filter(({ kind }) => kind === wanted)
  const [lost, inFlight] = [goneAs('lost'), goneAs('in flight')]
  const reuses = [...provider.book.grants.values()].flatMap(grant =>
    grant.reuses.map(reuse => judgeReuse(grant, reuse, circumstances))
  )
  const needless = reuses.filter(({ kind }) => kind === 'lost')
  const refreshes = fleet.lines.filter(({ event }) => event === 'refresh_succeeded' || event === 'refresh_failed')
  const warnings = fleet.lines.filter(({ level, event }) => level === 'warn' && event !== 'refresh_failed')
  const complaints = [...fleet.lines.filter(isFault).map(line => JSON.stringify(line)), ...fleet.complaints]
  report.figures({
    sessions,
    requests: counts.requests,
    'provider calls': provider.refreshCalls,
    'reuses seen by the provider': reuses.length,
    'sessions lost': lost.length,
    'in flight in a killed process': inFlight.length,
    'ended by the provider': goneAs('ended').length
  })
  report.figures({
    responses: countEach([...statuses].flatMap(([status, count]) => Array<string>(count).fill(String(status)))),
    'no response': counts.unanswered,
    logouts: counts.logouts,
    'failed logins': counts.failedLogins
  })
  report.figures({
    'outcomes of refreshes': countEach(refreshes.map(({ outcome }) => String(outcome))),
    warnings: countEach(warnings.map(({ event, reason }) => `${event} ${reason ?? ''}`.trim()))
  })
  report.figures({ 'reasons for tokens in flight': countEach(inFlight.map(({ why }) => why)) })
  report.check('no session lost', lost.length === 0, countEach(lost.map(({ why }) => why)))
  for (const { story } of lost.slice(0, MAX_STORIES)) if (story) report.note(story)
  report.check(
    'no token was used twice, except those in flight in a killed process',
    needless.length === 0,
    countEach(needless.map(({ why }) => why))
  )
  report.check('every response is one that the design allows', faults.length === 0, countEach(faults))
  report.check('no server logged an error', complaints.length === 0, countEach(complaints))
  return { logins: sessions, lost: lost.length, inFlight: inFlight.length }
}

/** Limits how many actions run in parallel, because all of them would overload the machine. */
async function eachOf<T>(items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> {
  const waiting = [...items]
  const workers = Array.from({ length: 20 }, async () => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await act(item)
  })
  await Promise.all(workers)
}
