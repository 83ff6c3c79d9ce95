// Storms: many users use the application while the provider, Redis and the processes fail at random.
import { setTimeout as pause } from 'node:timers/promises'
import { SESSION_SECRET } from '../../helpers/program.js'
import { createRandom } from '../../helpers/random.js'
import type { Play, Report } from '../suite.js'
import { type Behaviour, fine, late, unspent, withholding } from './calls.js'
import { type CrowdOptions, signInCrowd } from './crowd.js'
import { type Options, type Stage, setStage } from './stage.js'
import { readStoredTokens } from './stored-tokens.js'
import { combinedTrouble, startTrouble, type Trouble, type TroubleKind } from './trouble.js'

const TROUBLES: Readonly<Record<TroubleKind, string>> = {
  none: '',
  redis: 'Redis killed and restarted, ',
  kill: 'processes killed, ',
  restart: 'processes restarted, '
}
const TABS = 3
const LOST_ANSWERS = 0.02

/** @param isWanted selects the storms by their trouble */
export function storms(options: Options, isWanted: (trouble: TroubleKind) => boolean): Play[] {
  const { seeds, processes, modes, troubles } = options
  const variants = seeds.flatMap(seed =>
    processes.flatMap(count => modes.map(mode => ({ seed, processes: count, mode })))
  )
  return variants.flatMap(variant =>
    (variant.processes > 1 ? troubles : (['none'] as const))
      .filter(isWanted)
      .map(kind => storm({ ...options, ...variant, kind }))
  )
}

type StormOptions = Pick<Options, 'seconds' | 'users'> &
  Pick<CrowdOptions, 'seed' | 'mode'> & { readonly processes: number; readonly kind: TroubleKind }

function storm({ seed, mode, processes, seconds, users, kind }: StormOptions): Play {
  return async (report, scope) => {
    const what = `${processes} process${processes === 1 ? '' : 'es'}`
    report.title(`storm: ${what}, ${mode} mode, ${TROUBLES[kind]}${seconds} s, seed ${seed}`)
    const withRedis = processes > 1 || kind !== 'none'
    const stage = await setStage(scope, { seed, mode, processes, withRedis, timeLimitMs: 2000 })
    const { provider, fleet, proxy, redis } = stage
    const crowd = { seed, mode, users, tokenLifetimeSeconds: 2, logoutsHold: kind !== 'redis', circumstances: fleet }
    await live(report, stage, crowd, seconds, `storm, ${what}, ${mode}, ${TROUBLES[kind]}seed ${seed}`, () => {
      provider.follow(createWeather(seed))
      proxy.lose(LOST_ANSWERS)
      return startTrouble(kind, { fleet, redis, random: createRandom(seed + 4_000_000) })
    })
    report.figures({
      'requests tried again by the proxy': proxy.counts.triedAgain,
      'given up': proxy.counts.gaveUp,
      'responses lost on the way to browsers': proxy.counts.lostAnswers
    })
  }
}

const PROCESSES = 4
const SLOW_ANSWERS = 0.2
const SLOW_MS = 1500

/**
 * Processes are killed or stopped, and Redis is killed or stopped, in parallel. Redis writes every change to its
 * append-only file, so it loses nothing when it is killed.
 */
export function combined({ seeds, modes, full }: Options): Play[] {
  const [seconds, users] = full ? [120, 200] : [20, 30]
  return seeds.flatMap(seed =>
    modes.map(mode => async (report, scope) => {
      report.title(`combined faults: ${PROCESSES} processes, ${mode} mode, ${users} users, ${seconds} s, seed ${seed}`)
      // The file is never rewritten, so it has the whole history.
      const rewriteNever = ['--auto-aof-rewrite-percentage', '0']
      const redisArguments = ['--appendonly', 'yes', '--appendfsync', 'always', ...rewriteNever]
      const options = { seed, mode, processes: PROCESSES, withRedis: true, redisArguments, timeLimitMs: 10_000 }
      const stage = await setStage(scope, options)
      const { provider, fleet, redis } = stage
      if (!redis) throw new Error('This scenario needs Redis.')
      const stored = readStoredTokens(redis.folder, SESSION_SECRET)
      const circumstances = { killedAt: fleet.killedAt, wasStored: stored.has }
      const draw = createRandom(seed + 1_000_000)
      const slow: Behaviour = async call => {
        const made = call.work()
        if (draw() < SLOW_ANSWERS) await pause(draw() * SLOW_MS)
        call.answer(made)
      }
      const crowd = { seed, mode, users, tokenLifetimeSeconds: 4, logoutsHold: false, circumstances }
      const failure = `combined faults, ${mode}, ${users} users, ${seconds} s, seed ${seed}`
      await live(report, stage, crowd, seconds, failure, () => {
        provider.follow(slow)
        return combinedTrouble(fleet, redis, seed, seconds)
      })
    })
  )
}

/** Many users use the application during the failures that `begin` starts. Afterwards each must get a response. */
async function live(
  report: Report,
  stage: Stage,
  options: Omit<CrowdOptions, 'tabs'>,
  seconds: number,
  failure: string,
  begin: () => Trouble
): Promise<void> {
  const crowd = await signInCrowd(stage, { tabs: TABS, ...options })
  const trouble = begin()
  const end = performance.now() + seconds * 1000
  await crowd.live(() => performance.now() > end)
  await trouble.end()
  stage.proxy.lose(0)
  stage.provider.follow(fine.answers)
  await crowd.checkAllAnswered(report)
  crowd.report(report, { failure, remark: `${crowd.tally.requests} requests` })
  report.figures(trouble.figures())
}

// Random failures of the provider, generated from a seed. Spells of about a second follow each other, and each spell
// has its own shares of failures.

/** Shares of calls, from 0 to 1. The remaining calls get their response immediately. */
interface Spell {
  /** Responses that arrive late but within the time limit. */
  readonly slow: number
  readonly unspent: number
  /** Responses after the time limit. */
  readonly late: number
  readonly withheld: number
}

const spells: readonly Spell[] = [
  { slow: 0.1, unspent: 0, late: 0, withheld: 0 },
  { slow: 0.3, unspent: 0.1, late: 0, withheld: 0 },
  { slow: 0.2, unspent: 0.2, late: 0.02, withheld: 0.01 },
  { slow: 0, unspent: 0.5, late: 0, withheld: 0 },
  { slow: 0.9, unspent: 0.05, late: 0, withheld: 0 },
  { slow: 0.1, unspent: 0.1, late: 0.05, withheld: 0.02 },
  { slow: 0, unspent: 1, late: 0, withheld: 0 }
]
// The behaviour `hangs` is excluded, because its calls would last longer than the storm.
const { hangs, ...passing } = unspent
const MIN_MS = 300
const MAX_MS = 1300

export interface Weather {
  /** Returns the behaviour of a call that arrives this many milliseconds after the start. */
  at(elapsedMs: number): Behaviour
}

function createWeather(seed: number): Weather {
  const order = createRandom(seed)
  const draw = createRandom(seed + 1_000_000)
  const plan: { readonly spell: Spell; readonly until: number }[] = []

  function spellAt(elapsedMs: number): Spell {
    for (;;) {
      const now = plan.find(({ until }) => elapsedMs < until)
      if (now) return now.spell
      const until = (plan.at(-1)?.until ?? 0) + MIN_MS + order() * (MAX_MS - MIN_MS)
      plan.push({ spell: pick(spells, order()), until })
    }
  }

  return {
    at(elapsedMs) {
      const spell = spellAt(elapsedMs)
      let lot = draw()
      for (const [share, behaviours] of [
        [spell.withheld, withholding],
        [spell.late, late],
        [spell.unspent, passing],
        [spell.slow, fine]
      ] as const) {
        if (lot < share) return pick(Object.values<Behaviour>(behaviours), draw())
        lot -= share
      }
      return fine.answers
    }
  }
}

function pick<T>(choices: readonly T[], lot: number): T {
  return choices[Math.floor(lot * choices.length)] as T
}
