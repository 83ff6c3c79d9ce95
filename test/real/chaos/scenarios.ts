// The scenarios and the variants of each one.
import { brokenAnswer } from './broken-answer.js'
import { combined } from './combined.js'
import { cutOwner } from './cut-owner.js'
import { flushed } from './flushed.js'
import { evictionPolicies } from './foreign-keys.js'
import { killedOwner } from './killed-owner.js'
import { lateAnswer } from './late-answer.js'
import { logouts } from './logouts.js'
import { lostAnswer } from './lost-answer.js'
import { margin } from './margin.js'
import { mixedSecrets } from './mixed-secrets.js'
import { oldCookie } from './old-cookie.js'
import type { Options } from './options.js'
import type { Play } from './play-all.js'
import { promotion } from './promotion.js'
import { providerOutage } from './provider-outage.js'
import { quota } from './quota.js'
import { redisFull } from './redis-full.js'
import { redisOutage } from './redis-outage.js'
import { redisSessions } from './redis-sessions.js'
import { redisUnusable } from './redis-unusable.js'
import type { Report } from './report.js'
import { stalledOwner } from './stalled-owner.js'
import { storm } from './storm.js'
import { thousandRequests } from './thousand.js'
import type { TroubleKind } from './trouble.js'

type Variants = (options: Options) => Play[]

/** These scenarios keep the machine busy and run one at a time. */
export const busyScenarios: Readonly<Record<string, Variants>> = {
  storm: options => storms(options, trouble => trouble !== 'kill'),
  combined: ({ seeds, modes, full }) =>
    seeds.flatMap(seed =>
      modes.map(mode => report => combined(report, { seed, mode, seconds: full ? 120 : 20, people: full ? 200 : 30 }))
    ),
  thousand: ({ modes }) => modes.map(mode => report => thousandRequests(report, { seed: 1, mode })),
  'provider-outage': ({ full }) => [
    report => providerOutage(report, { seed: 1, processes: 1, people: full ? 200 : 80, outageSeconds: full ? 30 : 4.5 })
  ],
  // It comes last, when the machine has less other work, because it counts what is refreshed within a few seconds.
  quota: ({ full }) => [
    report =>
      full
        ? quota(report, { calls: 100, windowMs: 10_000, logins: 600 })
        : quota(report, { calls: 20, windowMs: 3000, logins: 120 })
  ]
}

/** These scenarios mostly wait, and several of them run at the same time. The longest come first. */
export const quietScenarios: Readonly<Record<string, Variants>> = {
  // After some seconds with load, these storms wait until the lock of a killed process ends (65 s).
  storm: options => storms(options, trouble => trouble === 'kill'),
  margin: ({ modes }) => modes.map(mode => report => margin(report, { mode, validSeconds: 14 })),
  'redis-outage': ({ full }) => [
    report => redisOutage(report, { seed: 1, mode: 'dual', people: full ? 60 : 20, outageSeconds: full ? 30 : 6 })
  ],
  'killed-owner': ({ modes }) => [
    ...modes.map(
      (mode): Play =>
        report =>
          killedOwner(report, { mode, step: 'first' })
    ),
    report => killedOwner(report, { mode: 'dual', step: 'second' })
  ],
  'stalled-owner': ({ modes, full }) =>
    modes.flatMap(mode =>
      (full ? [6, 30, 60] : [6, 30]).map(
        (seconds): Play =>
          report =>
            stalledOwner(report, { mode, seconds, logins: full || seconds < 10 ? 10 : 4 })
      )
    ),
  flushed: ({ modes }) => modes.map(mode => report => flushed(report, { mode })),
  'old-cookie': ({ modes }) =>
    modes.flatMap(mode =>
      [1, 2].map(
        (processes): Play =>
          report =>
            oldCookie(report, { mode, processes })
      )
    ),
  'cut-owner': ({ modes }) =>
    modes.flatMap(mode =>
      (['cut', 'hold'] as const).map(
        (kind): Play =>
          report =>
            cutOwner(report, { mode, kind, seconds: 4 })
      )
    ),
  'redis-unusable': ({ modes }) =>
    modes.flatMap(mode =>
      (['down', 'silent', 'read-only', 'slow-300', 'slow-700'] as const).map(
        (kind): Play =>
          report =>
            redisUnusable(report, { mode, kind })
      )
    ),
  'redis-full': ({ modes, full }) =>
    modes.flatMap(mode =>
      (full ? evictionPolicies : (['noeviction', 'volatile-ttl', 'allkeys-lru'] as const)).map(
        (policy): Play =>
          report =>
            redisFull(report, { mode, policy })
      )
    ),
  promotion: ({ modes, full }) =>
    modes.flatMap(mode =>
      (full ? [0, 200, 2000] : [200, 2000]).map(
        (absenceMs): Play =>
          report =>
            promotion(report, { mode, absenceMs })
      )
    ),
  'redis-sessions': ({ modes }) => modes.map(mode => report => redisSessions(report, { mode })),
  'late-answer': ({ modes, full }) => [
    ...modes.flatMap(mode =>
      (full ? [1, 2] : [2]).map(
        (processes): Play =>
          report =>
            lateAnswer(report, { mode, processes, step: 'first' })
      )
    ),
    report => lateAnswer(report, { mode: 'dual', processes: 1, step: 'second' })
  ],
  'broken-answer': ({ modes }) =>
    modes.flatMap(mode =>
      (['no-token', 'textual-lifetime'] as const).map(
        (kind): Play =>
          report =>
            brokenAnswer(report, { mode, kind })
      )
    ),
  'lost-answer': ({ modes, full }) =>
    modes.flatMap(mode =>
      [1, 2].map(
        (processes): Play =>
          report =>
            lostAnswer(report, { mode, processes, laterSeconds: full ? 7 : 3 })
      )
    ),
  'mixed-secrets': ({ modes }) => modes.map(mode => report => mixedSecrets(report, { mode })),
  logouts: ({ modes }) => modes.map(mode => report => logouts(report, { mode }))
}

export const scenarioNames: readonly string[] = [
  ...new Set([...Object.keys(busyScenarios), ...Object.keys(quietScenarios)])
]

function storms(
  { seeds, processes, modes, troubles, seconds, people }: Options,
  isWanted: (trouble: TroubleKind) => boolean
): Play[] {
  return seeds.flatMap(seed =>
    processes.flatMap(count =>
      modes.flatMap(mode =>
        (count > 1 ? troubles : (['none'] as const))
          .filter(isWanted)
          .map(trouble => (report: Report) => storm(report, { seed, mode, processes: count, trouble, seconds, people }))
      )
    )
  )
}
