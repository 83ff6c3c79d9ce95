// A storm: many people use the application while the provider, Redis and the processes fail at random.
import { createRandom } from '../../helpers/random.js'
import { fine } from './calls.js'
import { eachOf } from './each-of.js'
import type { Fleet, LogLine } from './fleet.js'
import { createPerson } from './person.js'
import type { Report } from './report.js'
import { createScope, type Scope } from './scope.js'
import { type Mode, setStage } from './stage.js'
import { countEach, createTally, spread, type Tally } from './tally.js'
import { startTrouble, type TroubleKind } from './trouble.js'
import { judgeLoss, judgeReuse, type Verdict } from './verdict.js'
import { createWeather } from './weather.js'

export interface StormOptions {
  readonly seed: number
  readonly mode: Mode
  readonly processes: number
  readonly seconds: number
  readonly people: number
  readonly trouble: TroubleKind
}

const TROUBLES: Readonly<Record<TroubleKind, string>> = {
  none: '',
  redis: 'Redis killed and restarted, ',
  kill: 'processes killed, ',
  restart: 'processes restarted, '
}
const TIME_LIMIT_MS = 2000
const TOKEN_LIFETIME_SECONDS = 2
const TABS = 3
const LOST_ANSWERS = 0.02
const MAX_STORIES = 10
/** Longer than the lock of a killed process lasts (65 s), plus one retry. */
export const ALL_BACK_WITHIN_MS = 75_000

export async function storm(report: Report, options: StormOptions): Promise<void> {
  const { seed, mode, processes, seconds, trouble: kind } = options
  report.title(
    `storm: ${plural(processes, 'process', 'es')}, ${mode} mode, ${TROUBLES[kind]}${seconds} s, seed ${seed}`
  )
  const scope = createScope()
  try {
    await play(scope, report, options)
  } finally {
    await scope.close()
  }
}

async function play(scope: Scope, report: Report, options: StormOptions): Promise<void> {
  const { seed, mode, processes, seconds, people: count, trouble: kind } = options
  const withRedis = processes > 1 || kind !== 'none'
  const stage = await setStage(scope, { seed, mode, processes, withRedis, timeLimitMs: TIME_LIMIT_MS })
  const { provider, fleet, proxy, redis } = stage
  provider.idp.settings.accessTokenLifetimeSeconds = TOKEN_LIFETIME_SECONDS
  const tally = createTally()
  const people = Array.from({ length: count }, (_, index) =>
    createPerson({
      seed: seed * 10_000 + index,
      tabs: TABS,
      mode,
      browser: stage.newBrowser(),
      provider,
      tokenLifetimeMs: TOKEN_LIFETIME_SECONDS * 1000,
      tally,
      logoutsHold: kind !== 'redis',
      judge: grant => judgeLoss(grant, fleet)
    })
  )
  await eachOf(people, person => person.signIn())

  provider.follow(createWeather(seed))
  proxy.lose(LOST_ANSWERS)
  const trouble = startTrouble(kind, { fleet, redis, random: createRandom(seed + 4_000_000) })
  const end = performance.now() + seconds * 1000
  await Promise.all(people.map(person => person.live(() => performance.now() > end)))
  await trouble.end()
  proxy.lose(0)
  provider.follow(fine.answers)
  const back = await Promise.all(people.map(person => person.isAnswered(ALL_BACK_WITHIN_MS)))

  const reuses = [...provider.book.grants.values()].flatMap(grant =>
    grant.reuses.map(reuse => judgeReuse(grant, reuse, fleet))
  )
  printOutcome(report, tally, fleet, reuses, provider.refreshCalls)
  report.figures({
    'requests tried again by the proxy': proxy.triedAgain,
    'given up': proxy.gaveUp,
    'answers lost on the way to browsers': proxy.lostAnswers,
    ...trouble.figures()
  })
  report.row({
    failure: `storm, ${plural(processes, 'process', 'es')}, ${mode}, ${TROUBLES[kind]}seed ${seed}`,
    logins: tally.sessions,
    lost: tally.gone.filter(({ kind }) => kind === 'lost').length,
    inFlight: tally.gone.filter(({ kind }) => kind === 'in flight').length
  })
  report.check(
    'after the storm every person gets an answer',
    back.every(Boolean),
    `${back.filter(is => !is).length} people did not`
  )
}

/** Prints the figures of a storm, and checks that no session was lost. */
export function printOutcome(
  report: Report,
  tally: Tally,
  fleet: Fleet,
  reuses: readonly Verdict[],
  providerCalls: number
): void {
  const lost = tally.gone.filter(({ kind }) => kind === 'lost')
  const inFlight = tally.gone.filter(({ kind }) => kind === 'in flight')
  const ended = tally.gone.filter(({ kind }) => kind === 'ended')
  const needless = reuses.filter(({ kind }) => kind === 'lost')
  const refreshes = fleet.lines.filter(({ event }) => event === 'refresh')
  const { median, p99, longest } = spread(tally.durations)
  report.figures({
    sessions: tally.sessions,
    requests: tally.requests,
    refreshes: refreshes.filter(({ outcome }) => outcome === 'refreshed').length,
    'provider calls': providerCalls,
    'reuses seen by the provider': reuses.length,
    'sessions lost': lost.length,
    'in flight in a killed process': inFlight.length,
    'ended by the provider': ended.length
  })
  report.figures({
    answers: countEach([...tally.statuses].flatMap(([status, count]) => Array<string>(count).fill(String(status)))),
    'no answer': tally.unanswered,
    logouts: tally.logouts,
    'failed logins': tally.failedLogins,
    'ms median': median,
    p99,
    longest
  })
  const warnings = fleet.lines.filter(({ level, event }) => level === 40 && event !== 'refresh_failed')
  report.figures({ warnings: countEach(warnings.map(({ event, reason }) => `${event} ${reason ?? ''}`.trim())) })
  report.figures({ 'outcomes of refreshes': countEach(refreshes.map(({ outcome }) => String(outcome))) })
  const held = inFlight.flatMap(({ heldMs }) => heldMs ?? [])
  report.figures({
    'reasons for tokens in flight in a killed process': countEach(inFlight.map(({ why }) => why)),
    ...(held.length > 0 && { 'longest time from answer to kill, ms': Math.round(Math.max(...held)) })
  })
  report.check('no session lost', lost.length === 0, countEach(lost.map(({ why }) => why)))
  for (const { story } of lost.slice(0, MAX_STORIES)) if (story) report.note(story)
  if (lost.length > 0)
    for (const line of fleet.lines.filter(isAboutRedis).slice(0, MAX_STORIES)) report.note(lineOf(line))
  report.check(
    'no token was used twice, except those in flight in a killed process',
    needless.length === 0,
    countEach(needless.map(({ why }) => why))
  )
  report.check('every answer is one that the design allows', tally.faults.length === 0, countEach(tally.faults))
  const errors = fleet.lines.filter(({ level }) => level >= 50)
  report.check(
    'no server logged an error',
    errors.length === 0 && fleet.complaints.length === 0,
    countEach([...errors.map(line => JSON.stringify(line)), ...fleet.complaints])
  )
}

function isAboutRedis({ event = '' }: LogLine): boolean {
  return event.startsWith('redis_')
}

function lineOf({ at, process, event, reason, away_ms }: LogLine): string {
  return `at ${Math.round(at)} ms process ${process} logged ${event} ${reason ?? away_ms ?? ''}`
}

function plural(count: number, word: string, ending: string): string {
  return `${count} ${word}${count === 1 ? '' : ending}`
}
