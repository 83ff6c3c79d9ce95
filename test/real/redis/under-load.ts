// Simulated users use several processes of the server while a scenario breaks a real Redis. Copies of cookies of sessions
// that were logged out before are tried all the time.
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom } from '../../helpers/random.js'
import type { Teardown } from '../../helpers/scope.js'
import { ALL_BACK_WITHIN_MS, signInCrowd } from '../chaos/crowd.js'
import { type Copies, type Logins, logOut, signInAll } from '../chaos/logins.js'
import { type Mode, type Stage, setStage } from '../chaos/stage.js'
import type { Tally } from '../chaos/tally.js'
import type { Circumstances } from '../chaos/verdict.js'
import type { Play, Report } from '../suite.js'
import { MAX_LAG_SECONDS } from './sentinel.js'

export type SessionStore = 'cookie' | 'redis'

/** What all scenarios have in common. */
export interface Variant {
  readonly seed: number
  readonly mode: Mode
  /** The setting `session.store`. */
  readonly store: SessionStore
  readonly users: number
}

export interface LoadOptions extends Variant {
  readonly failure: string
  /** False if the checks are only reported, because the documents do not promise that they pass. */
  readonly isRequired?: boolean
  /** Further settings of the process in that slot. */
  readonly environment?: (slot: number) => Readonly<Record<string, string>>
  /** The process in this slot can reach only the old master during the outage. */
  readonly cutOffSlot?: number
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

const PROCESSES = 3
const TABS = 2
const TIME_LIMIT_MS = 10_000
const LIFETIME_SECONDS = 4
// Requests in the last seconds of a token cause an early refresh, which must know of a logout too.
const MARGIN_SECONDS = 2
// The tokens of logged-out sessions expire one after the other, so that at any time some of them are due and not expired.
const LEAVING_LIFETIMES = Array.from({ length: 12 }, (_, index) => 8 + index * MARGIN_SECONDS)
const CALM_MS = 3000
const COPIES_EVERY_MS = 300
/**
 * An old master without replicas still accepts writes for `min-replicas-max-lag`, which it checks once a second. If a tab was closed
 * during a refresh in this time, its outdated cookie comes to another process, and the login is lost.
 */
const OLD_MASTER_ACCEPTS_MS = (MAX_LAG_SECONDS + 1) * 1000
/** The time for which processes may store late results after an outage. */
const AFTER_OUTAGE_MS = 2000

/** @param openRedis starts Redis @param fault breaks Redis, and resolves when it runs again */
export function underLoad<T extends { readonly url: string }>(
  options: LoadOptions,
  openRedis: (scope: Teardown) => Promise<T>,
  fault: (load: Load, redis: T) => Promise<void>
): Play {
  const { failure, seed, mode, store, users: count, isRequired = true } = options
  const title = `${failure}, session.store: ${store}, ${mode} mode, seed ${seed}`
  return async (given, scope) => {
    given.title(title)
    const report = isRequired ? given : withoutChecks(given)
    const redis = await openRedis(scope)
    const stage = await setStage(scope, {
      seed,
      mode,
      processes: PROCESSES,
      withRedis: false,
      redisUrl: () => redis.url,
      timeLimitMs: TIME_LIMIT_MS,
      environment: slot => ({
        PLATFORM_AUTH_SESSION_STORE: store,
        PLATFORM_AUTH_REFRESH_BEFORE_EXPIRY: String(MARGIN_SECONDS),
        ...options.environment?.(slot)
      })
    })
    const { provider, fleet } = stage
    const outages: { readonly from: number; until: number }[] = []
    const circumstances: Circumstances = {
      killedAt: fleet.killedAt,
      wasStored(refreshToken) {
        const rotations = [...provider.book.grants.values()].flatMap(grant => grant.rotations)
        const rotation = rotations.find(({ issued }) => issued === refreshToken)
        const killed = rotation && fleet.killedAt(rotation.caller)
        if (!rotation || killed === undefined) return true
        return !outages.some(({ from, until }) => rotation.settledAt >= from && killed <= until)
      },
      wasCutOff: (caller, at) =>
        Number(caller.split('.')[0]) === options.cutOffSlot &&
        outages.some(({ from }) => at >= from && at <= from + OLD_MASTER_ACCEPTS_MS)
    }
    const crowd = await signInCrowd(stage, {
      seed,
      mode,
      users: count,
      tabs: TABS,
      tokenLifetimeSeconds: LIFETIME_SECONDS,
      logoutsHold: false,
      circumstances
    })
    const { users, tally } = crowd
    const copies = await leave(stage, mode)
    provider.idp.settings.accessTokenLifetimeSeconds = LIFETIME_SECONDS

    let hasEnded = false
    const trying = tryUntil(copies, () => hasEnded)
    const living = crowd.live(() => hasEnded)
    await pause(CALM_MS)
    tally.refused.clear()
    const load: Load = {
      report,
      stage,
      tally,
      random: createRandom(seed + 5_000_000),
      async outage(fault) {
        const outage = { from: performance.now(), until: Number.POSITIVE_INFINITY }
        outages.push(outage)
        return fault().finally(() => {
          outage.until = performance.now() + AFTER_OUTAGE_MS
        })
      }
    }
    await fault(load, redis).finally(async () => {
      hasEnded = true
      await Promise.all([living, trying])
    })
    const endedAt = performance.now()
    const back = await Promise.all(
      users.map(async user => {
        const isServed = await user.isAnswered(ALL_BACK_WITHIN_MS)
        const servedAt = performance.now()
        // The session also survives the next refresh.
        await pause(LIFETIME_SECONDS * 1000 + 100)
        return isServed && (await user.isAnswered(ALL_BACK_WITHIN_MS)) ? servedAt - endedAt : undefined
      })
    )
    await tryOnce(copies)

    const remark = `${tally.requests} requests, ${tally.statuses.get(503) ?? 0} × 503${isRequired ? '' : ', not required'}`
    crowd.report(report, { failure: title, letIn: copies.counts.letIn, remark })
    const waits = back.filter(ms => ms !== undefined)
    report.figures({
      users: count,
      'users who got a 503': tally.refused.size,
      'longest time until one of them was served, ms': Math.round(Math.max(0, ...tally.refused.values())),
      'ms until the last was served again after the scenario': Math.round(Math.max(0, ...waits)),
      'requests with a logged-out cookie': copies.counts.tries,
      accepted: copies.counts.letIn,
      'accepted by a process that started without Redis': copies.counts.letInUnknown
    })
    report.check('no logged-out cookie is accepted', copies.counts.letIn === 0, String(copies.counts.letIn))
    report.check('at the end every user is served', waits.length === count, `${count - waits.length} were not`)
  }
}

/** Reports the results of checks without counting them. */
function withoutChecks(report: Report): Report {
  return {
    ...report,
    check: (what, holds, detail = '') =>
      report.note(`${holds ? 'true' : `not true, ${detail}`} (not required): ${what}`)
  }
}

/** Signs in, makes copies of the cookies, and logs out. */
async function leave(stage: Stage, mode: Mode): Promise<Copies> {
  const groups: Logins[] = []
  for (const seconds of LEAVING_LIFETIMES) {
    stage.provider.idp.settings.accessTokenLifetimeSeconds = seconds
    groups.push(await signInAll(stage, mode, 1))
  }
  const browsers = groups.flatMap(({ all }) => all.map(({ browser }) => browser))
  return logOut(stage, groups[0] as Logins, browsers)
}

/** A process may be killed meanwhile, so a round may fail. */
async function tryOnce(copies: Copies): Promise<void> {
  await copies.tryAll().catch(() => {})
}

async function tryUntil(copies: Copies, hasEnded: () => boolean): Promise<void> {
  while (!hasEnded()) {
    await tryOnce(copies)
    await pause(COPIES_EVERY_MS)
  }
}
