// A trial signs some people in, causes one failure and then checks that every login still exists. The scenarios of this
// kind differ only in the failure.
import { setTimeout as pause } from 'node:timers/promises'
import { fine } from './calls.js'
import { type Logins, settle, signInAll } from './logins.js'
import type { Report, Row } from './report.js'
import { createScope, type Scope } from './scope.js'
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
  readonly scope: Scope
  readonly stage: Stage
  readonly logins: Logins
}

/** Longer than the lock of a dead process lasts (65 s), plus the time for which requests wait. */
const ALL_SETTLED_WITHIN_MS = 80_000
const TIME_LIMIT_MS = 10_000
const MAX_STORIES = 3
// The statuses that the design allows. Single mode requests the profile, which answers 502 or 504 if the provider's
// userinfo endpoint fails.
const NAMED: Readonly<Record<Mode, readonly string[]>> = {
  single: ['0', '200', '401', '502', '503', '504'],
  dual: ['0', '200', '401', '503']
}

/**
 * @param play causes the failure and ends it. It may return further values for the table.
 */
export async function trial(
  report: Report,
  options: TrialOptions,
  play: (trial: Trial) => Promise<Pick<Row, 'letIn' | 'remark'> | undefined>
): Promise<void> {
  const { failure, mode, logins: count, tokenLifetimeSeconds = 2, waitMs } = options
  report.title(`${failure}: ${count} logins, ${mode} mode`)
  const scope = createScope()
  try {
    const stage = await setStage(scope, {
      seed: 1,
      processes: 2,
      withRedis: true,
      timeLimitMs: TIME_LIMIT_MS,
      ...options
    })
    const { provider, fleet } = stage
    provider.idp.settings.accessTokenLifetimeSeconds = tokenLifetimeSeconds
    const logins = await signInAll(stage, mode, count)
    await pause(waitMs ?? tokenLifetimeSeconds * 1000 + 100)
    const more = await play({ scope, stage, logins })

    provider.follow(fine.answers)
    provider.idp.settings.accessTokenLifetimeSeconds = 2
    const endedAt = performance.now()
    const deadline = endedAt + ALL_SETTLED_WITHIN_MS
    const states = await Promise.all(
      logins.all.map(login => settle(logins, login, provider.idp.settings.accessTokenLifetimeSeconds * 1000, deadline))
    )
    const verdicts = logins.all.flatMap(({ grant }, index): Verdict[] => {
      const isGone = states[index] === 'gone' || (grant?.reuses.length ?? 0) > 0
      return isGone ? [judgeLoss(grant, { killedAt: fleet.killedAt })] : []
    })
    const counts = printOutcome(report, mode, logins, verdicts)
    report.row({ failure: `${failure} (${mode})`, logins: count, ...counts, ...more })
    const unanswered = states.filter(state => state === 'unanswered').length
    report.figures({ 'ms until the last was served again': Math.round(performance.now() - endedAt) })
    report.check('after the failure every login gets an answer', unanswered === 0, `${unanswered} did not`)
  } finally {
    await scope.close()
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
    answers: countEach(statuses),
    'slowest answer, ms': Math.round(Math.max(...logins.answers.map(({ durationMs }) => durationMs)))
  })
  report.check('no login lost', lost.length === 0, `${lost.length}: ${countEach(lost.map(({ why }) => why))}`)
  for (const { story } of lost.slice(0, MAX_STORIES)) if (story) report.note(story)
  report.check(
    'every 503 has a Retry-After',
    refused.every(({ retryAfter }) => Number(retryAfter) >= 1)
  )
  const named = NAMED[mode]
  const others = statuses.filter(status => !named.includes(status))
  report.check('every answer is one that the design allows', others.length === 0, countEach(others))
  return { lost: lost.length, inFlight }
}
