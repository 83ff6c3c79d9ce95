// The simulated users of a scenario, and the figures and checks of what happened to them.
import { isFault } from '../../helpers/logs.js'
import type { Report, Row } from '../suite.js'
import type { Fleet, LogLine } from './fleet.js'
import { eachOf } from './logins.js'
import type { Mode, Stage } from './stage.js'
import { countEach, createTally, spread } from './tally.js'
import { createUser } from './user.js'
import { type Circumstances, judgeLoss, judgeReuse } from './verdict.js'

export interface CrowdOptions {
  readonly seed: number
  readonly mode: Mode
  readonly users: number
  readonly tabs: number
  readonly tokenLifetimeSeconds: number
  /** If true, every server must refuse the session's cookie immediately after a logout. */
  readonly logoutsHold: boolean
  readonly circumstances: Circumstances
}

/** Longer than the lease of a killed process lasts (65 s), plus one retry. */
export const ALL_BACK_WITHIN_MS = 75_000
const MAX_STORIES = 10

/** Resolves when every user has signed in. */
export async function signInCrowd(stage: Stage, options: CrowdOptions) {
  const { seed, users: count, tokenLifetimeSeconds, circumstances } = options
  const { provider, fleet } = stage
  provider.idp.settings.accessTokenLifetimeSeconds = tokenLifetimeSeconds
  const tally = createTally()
  const users = Array.from({ length: count }, (_, index) =>
    createUser({
      ...options,
      seed: seed * 10_000 + index,
      browser: stage.newBrowser(),
      provider,
      tokenLifetimeMs: tokenLifetimeSeconds * 1000,
      tally,
      judge: grant => judgeLoss(grant, circumstances)
    })
  )
  await eachOf(users, user => user.signIn())
  const goneAs = (wanted: string) => tally.gone.filter(({ kind }) => kind === wanted)

  return {
    users,
    tally,
    /** All users use their tabs until hasEnded() returns true. */
    async live(hasEnded: () => boolean) {
      await Promise.all(users.map(user => user.live(hasEnded)))
    },
    /** Prints the figures and a row of the table, and checks that no session was lost. */
    report(report: Report, row: Pick<Row, 'failure' | 'letIn' | 'remark'>) {
      const [lost, inFlight, ended] = [goneAs('lost'), goneAs('in flight'), goneAs('ended')]
      const reuses = [...provider.book.grants.values()].flatMap(grant =>
        grant.reuses.map(reuse => judgeReuse(grant, reuse, circumstances))
      )
      const needless = reuses.filter(({ kind }) => kind === 'lost')
      const refreshes = fleet.lines.filter(({ event }) => event === 'refresh_succeeded' || event === 'refresh_failed')
      const { median, p99, longest } = spread(tally.durations)
      report.figures({
        sessions: tally.sessions,
        requests: tally.requests,
        refreshes: refreshes.filter(({ outcome }) => outcome === 'succeeded').length,
        'provider calls': provider.refreshCalls,
        'reuses seen by the provider': reuses.length,
        'sessions lost': lost.length,
        'in flight in a killed process': inFlight.length,
        'ended by the provider': ended.length
      })
      report.figures({
        responses: countEach(
          [...tally.statuses].flatMap(([status, count]) => Array<string>(count).fill(String(status)))
        ),
        'no response': tally.unanswered,
        logouts: tally.logouts,
        'failed logins': tally.failedLogins,
        'ms median': median,
        p99,
        longest
      })
      const warnings = fleet.lines.filter(({ level, event }) => level === 'warn' && event !== 'refresh_failed')
      report.figures({ warnings: countEach(warnings.map(({ event, reason }) => `${event} ${reason ?? ''}`.trim())) })
      report.figures({ 'outcomes of refreshes': countEach(refreshes.map(({ outcome }) => String(outcome))) })
      const held = inFlight.flatMap(({ heldMs }) => heldMs ?? [])
      report.figures({
        'reasons for tokens in flight in a killed process': countEach(inFlight.map(({ why }) => why)),
        ...(held.length > 0 && { 'longest time from response to kill, ms': Math.round(Math.max(...held)) })
      })
      report.check('no session lost', lost.length === 0, countEach(lost.map(({ why }) => why)))
      for (const { story } of lost.slice(0, MAX_STORIES)) if (story) report.note(story)
      if (lost.length > 0) {
        for (const line of fleet.lines.filter(isAboutRedis).slice(0, MAX_STORIES)) report.note(textOf(line))
      }
      report.check(
        'no token was used twice, except those in flight in a killed process',
        needless.length === 0,
        countEach(needless.map(({ why }) => why))
      )
      report.check('every response is one that the design allows', tally.faults.length === 0, countEach(tally.faults))
      checkNoErrors(report, fleet)
      report.row({ ...row, logins: tally.sessions, lost: lost.length, inFlight: inFlight.length })
    },
    /** Checks that every user gets a response after the failures. */
    async checkAllAnswered(report: Report) {
      const answered = await Promise.all(users.map(user => user.isAnswered(ALL_BACK_WITHIN_MS)))
      const others = answered.filter(is => !is).length
      report.check('after the failures every user gets a response', others === 0, `${others} users did not`)
    }
  }
}

function checkNoErrors(report: Report, { lines, complaints }: Fleet): void {
  const errors = lines.filter(isFault).map(line => JSON.stringify(line))
  const all = [...errors, ...complaints]
  report.check('no server logged an error', all.length === 0, countEach(all))
}

function isAboutRedis({ event = '' }: LogLine): boolean {
  return event.startsWith('redis_')
}

function textOf({ at, process, event, reason, away_ms }: LogLine): string {
  return `at ${Math.round(at)} ms process ${process} logged ${event} ${reason ?? away_ms ?? ''}`
}
