// The provider allows a limited number of calls in each time window, and many more sessions need a refresh.
import { setTimeout as pause } from 'node:timers/promises'
import type { Behaviour } from './calls.js'
import type { Report } from './report.js'
import { trial } from './trial.js'

export interface QuotaOptions {
  /** The number of calls that are allowed in each window. */
  readonly calls: number
  readonly windowMs: number
  readonly logins: number
}

const WINDOWS = 4
const EVERY_MS = 1000
/** The lowest acceptable share of the sessions that the quota allows to be refreshed. */
const LEAST_SHARE = 0.75
const MAX_REFUSED = 2 / 3

export function quota(report: Report, { calls, windowMs, logins: count }: QuotaOptions): Promise<void> {
  const mode = 'dual'
  const ideal = (WINDOWS * calls) / 2
  const failure = `Quota of ${calls} calls in ${windowMs / 1000} s, ${count} dual sessions due`
  return trial(report, { failure, mode, logins: count }, async ({ stage, logins }) => {
    stage.provider.idp.settings.accessTokenLifetimeSeconds = 300
    const counter = createQuota(calls, windowMs)
    stage.provider.follow(counter.behaviour)
    const end = performance.now() + WINDOWS * windowMs - 200
    const refreshed = await Promise.all(
      logins.all.map(async ({ browser }) => {
        await pause(Math.random() * EVERY_MS)
        while (performance.now() < end) {
          const { status, retryAfter } = await logins.ask(browser)
          if (status === 200 && performance.now() < end) return 1
          if (status === 401) return 0
          await pause(Math.min(Number(retryAfter ?? 1) * 1000, Math.max(0, end - performance.now())))
        }
        return 0
      })
    )
    const served = refreshed.reduce<number>((sum, one) => sum + one, 0)
    const { refused, asked } = counter
    report.figures({
      [`refreshed after ${WINDOWS} windows`]: served,
      ideal,
      'calls refused': refused,
      'of calls': asked
    })
    report.check('most of the quota is used', served >= LEAST_SHARE * ideal, `${served} of ${ideal} refreshed`)
    report.check('few calls are refused', refused <= asked * MAX_REFUSED, `${refused} of ${asked}`)
    const remark = `${served} refreshed after ${WINDOWS} windows (ideal ${ideal}); ${refused} of ${asked} calls refused`
    return { remark }
  })
}

function createQuota(allowed: number, windowMs: number) {
  const began = performance.now()
  const counts = { asked: 0, refused: 0 }
  let current = 0
  let used = 0
  const behaviour: Behaviour = ({ exchange, work, answer }) => {
    const elapsed = performance.now() - began
    const index = Math.floor(elapsed / windowMs)
    if (index !== current) used = 0
    current = index
    counts.asked++
    if (used++ < allowed) return answer(work())
    counts.refused++
    const leftMs = (index + 1) * windowMs - elapsed
    const headers = { 'retry-after': String(Math.ceil(leftMs / 1000)) }
    exchange.send({ status: 429, headers, body: { error: 'temporarily_unavailable' } })
  }
  return {
    behaviour,
    get asked() {
      return counts.asked
    },
    get refused() {
      return counts.refused
    }
  }
}
