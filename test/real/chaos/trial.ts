// A trial signs some users in, causes one failure and then checks that every login still exists. The scenarios of this
// kind differ only in the failure.
import { setTimeout as pause } from 'node:timers/promises'
import type { Teardown } from '../../helpers/scope.js'
import type { Play, Report, Row } from '../suite.js'
import { fine } from './calls.js'
import { type Logins, settle, signInAll } from './logins.js'
import { type Mode, type Stage, type StageOptions, setStage } from './stage.js'
import { countEach } from './tally.js'
import { judgeLoss, type Verdict } from './verdict.js'

export interface TrialOptions extends Partial<Omit<StageOptions, 'mode'>> {
  /** The name of the failure in the table of results. */
  readonly failure: string
  readonly mode: Mode
  readonly logins: number
  /** The lifetime of every access token in the trial. */
  readonly tokenLifetimeSeconds?: number
  /** The time between sign-in and the failure. By default, the tokens have just expired. */
  readonly waitMs?: number
}

export interface Trial {
  readonly report: Report
  readonly scope: Teardown
  readonly stage: Stage
  readonly logins: Logins
  /** Adds values to the row of the table. */
  addToRow(values: Pick<Row, 'letIn' | 'remark'>): void
}

/** Longer than the lease of a dead process lasts (65 s), plus the time for which requests wait. */
const ALL_SETTLED_WITHIN_MS = 80_000
const TIME_LIMIT_MS = 10_000
const MAX_STORIES = 3
// The statuses that the design allows. Single mode requests the profile, which responds with 502 or 504 if the
// provider's userinfo endpoint fails.
const ALLOWED: Readonly<Record<Mode, readonly string[]>> = {
  single: ['0', '200', '401', '502', '503', '504'],
  dual: ['0', '200', '401', '503']
}

/** @param cause causes the failure and ends it */
export function trial(options: TrialOptions, cause: (trial: Trial) => Promise<void>): Play {
  const { failure, mode, logins: count, tokenLifetimeSeconds = 2, waitMs } = options
  return async function play(report, scope) {
    report.title(`${failure}: ${count} logins, ${mode} mode`)
    const stage = await setStage(scope, { processes: 2, withRedis: true, timeLimitMs: TIME_LIMIT_MS, ...options })
    const { provider, fleet } = stage
    const { settings } = provider.idp
    settings.accessTokenLifetimeSeconds = tokenLifetimeSeconds
    const logins = await signInAll(stage, mode, count)
    await pause(waitMs ?? tokenLifetimeSeconds * 1000 + 100)
    let more: Pick<Row, 'letIn' | 'remark'> = {}
    const addToRow = (values: typeof more) => {
      more = values
    }
    await cause({ report, scope, stage, logins, addToRow })

    provider.follow(fine.answers)
    settings.accessTokenLifetimeSeconds = 2
    const endedAt = performance.now()
    const deadline = endedAt + ALL_SETTLED_WITHIN_MS
    const states = await Promise.all(
      logins.all.map(login => settle(logins, login, settings.accessTokenLifetimeSeconds * 1000, deadline))
    )
    const verdicts = logins.all.flatMap(({ grant }, index): Verdict[] => {
      const isGone = states[index] === 'gone' || (grant?.reuses.length ?? 0) > 0
      return isGone ? [judgeLoss(grant, { killedAt: fleet.killedAt })] : []
    })
    const counts = printOutcome(report, mode, logins, verdicts)
    report.row({ failure: `${failure} (${mode})`, logins: count, ...counts, ...more })
    const unanswered = states.filter(state => state === 'unanswered').length
    report.figures({ 'ms until the last was served again': Math.round(performance.now() - endedAt) })
    report.check('after the failure every login gets a response', unanswered === 0, `${unanswered} did not`)
  }
}

function printOutcome(
  report: Report,
  mode: Mode,
  logins: Logins,
  verdicts: readonly Verdict[]
): Pick<Row, 'lost' | 'inFlight'> {
  const lost = verdicts.filter(({ kind }) => kind === 'lost')
  const inFlight = verdicts.filter(({ kind }) => kind === 'in flight').length
  const refused = logins.answers.filter(({ status }) => status === 503)
  const statuses = logins.answers.map(({ status }) => String(status))
  report.figures({
    logins: logins.all.length,
    lost: lost.length,
    'in flight in a killed process': inFlight,
    responses: countEach(statuses),
    'slowest response, ms': Math.round(Math.max(...logins.answers.map(({ durationMs }) => durationMs)))
  })
  report.check('no login lost', lost.length === 0, `${lost.length}: ${countEach(lost.map(({ why }) => why))}`)
  for (const { story } of lost.slice(0, MAX_STORIES)) if (story) report.note(story)
  report.check(
    'every 503 has a Retry-After',
    refused.every(({ retryAfter }) => Number(retryAfter) >= 1)
  )
  const others = statuses.filter(status => !ALLOWED[mode].includes(status))
  report.check('every response is one that the design allows', others.length === 0, countEach(others))
  return { lost: lost.length, inFlight }
}
