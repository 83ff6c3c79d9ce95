// Random, combined faults: processes are killed or stopped, and Redis is killed or stopped, all at the same time. Redis
// writes every change to its append-only file, so it loses nothing when it is killed.
import { setTimeout as pause } from 'node:timers/promises'
import { createRandom } from '../../helpers/random.js'
import type { RedisServer } from '../../helpers/redis-server.js'
import { type Behaviour, fine } from './calls.js'
import { eachOf } from './each-of.js'
import { type Fleet, SESSION_SECRET } from './fleet.js'
import { createPerson } from './person.js'
import type { Report } from './report.js'
import { createScope, type Scope } from './scope.js'
import { type Mode, setStage } from './stage.js'
import { readStoredTokens } from './stored-tokens.js'
import { ALL_BACK_WITHIN_MS, printOutcome } from './storm.js'
import { createTally } from './tally.js'
import { type Circumstances, judgeLoss, judgeReuse } from './verdict.js'

export interface CombinedOptions {
  readonly seed: number
  readonly mode: Mode
  readonly seconds: number
  readonly people: number
}

const PROCESSES = 4
const TABS = 3
const TIME_LIMIT_MS = 10_000
const TOKEN_LIFETIME_SECONDS = 4
const SLOW_ANSWERS = 0.2
const SLOW_MS = 1500
/** The longest fault lasts for this share of the whole run: 20 s of two minutes. */
const MAX_FAULT = 1 / 6
/** The longest time between two faults of a process, as a multiple of the longest fault. */
const CALM = 2.5
/** The share of faults in which a process is killed. Each kill blocks the sessions that it was refreshing for 65 s. */
const KILLED = 0.3
export async function combined(report: Report, options: CombinedOptions): Promise<void> {
  const { seed, mode, seconds, people } = options
  report.title(`combined faults: ${PROCESSES} processes, ${mode} mode, ${people} people, ${seconds} s, seed ${seed}`)
  const scope = createScope()
  try {
    await play(scope, report, options)
  } finally {
    await scope.close()
  }
}

async function play(scope: Scope, report: Report, options: CombinedOptions): Promise<void> {
  const { seed, mode, seconds, people: count } = options
  // The file is never rewritten, so it has the whole history.
  const rewriteNever = ['--auto-aof-rewrite-percentage', '0']
  const redisArguments = ['--appendonly', 'yes', '--appendfsync', 'always', ...rewriteNever]
  const stage = await setStage(scope, {
    seed,
    mode,
    processes: PROCESSES,
    withRedis: true,
    redisArguments,
    timeLimitMs: TIME_LIMIT_MS
  })
  const { provider, fleet, redis } = stage
  if (!redis) throw new Error('This scenario needs Redis.')
  provider.idp.settings.accessTokenLifetimeSeconds = TOKEN_LIFETIME_SECONDS
  const stored = readStoredTokens(redis.folder, SESSION_SECRET)
  const circumstances: Circumstances = { killedAt: fleet.killedAt, wasStored: stored.has }
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
      logoutsHold: false,
      judge: grant => judgeLoss(grant, circumstances)
    })
  )
  await eachOf(people, person => person.signIn())

  const draw = createRandom(seed + 1_000_000)
  const answers: Behaviour = async call => {
    const made = call.work()
    if (draw() < SLOW_ANSWERS) await pause(draw() * SLOW_MS)
    call.answer(made)
  }
  provider.follow(answers)
  const faults = startFaults({ fleet, redis, seed, longestMs: seconds * 1000 * MAX_FAULT })
  const end = performance.now() + seconds * 1000
  await Promise.all(people.map(person => person.live(() => performance.now() > end)))
  await faults.end()
  provider.follow(fine.answers)
  const back = await Promise.all(people.map(person => person.isAnswered(ALL_BACK_WITHIN_MS)))

  const reuses = [...provider.book.grants.values()].flatMap(grant =>
    grant.reuses.map(reuse => judgeReuse(grant, reuse, circumstances))
  )
  printOutcome(report, tally, fleet, reuses, provider.refreshCalls)
  report.figures(faults.counts)
  report.row({
    failure: `combined faults, ${mode}, ${count} people, ${seconds} s, seed ${seed}`,
    logins: tally.sessions,
    lost: tally.gone.filter(({ kind }) => kind === 'lost').length,
    inFlight: tally.gone.filter(({ kind }) => kind === 'in flight').length,
    remark: `${tally.requests} requests`
  })
  report.check(
    'after the faults every person gets an answer',
    back.every(Boolean),
    `${back.filter(is => !is).length} people did not`
  )
}

interface FaultParts {
  readonly fleet: Fleet
  readonly redis: RedisServer
  readonly seed: number
  readonly longestMs: number
}

interface Faults {
  /** Starts no further faults. Resolves when everything runs again. */
  end(): Promise<void>
  readonly counts: Readonly<Record<string, number>>
}

function startFaults({ fleet, redis, seed, longestMs }: FaultParts): Faults {
  const counts = { 'processes killed': 0, 'processes stopped': 0, 'Redis killed': 0, 'Redis stopped': 0 }
  let hasEnded = false
  let stopWaiting = () => {}
  const ended = new Promise<void>(resolve => {
    stopWaiting = resolve
  })

  /** Each slot, and Redis, has its own sequence of faults, so that faults overlap. */
  async function repeat(sequence: number, fault: (random: () => number) => Promise<void>): Promise<void> {
    const random = createRandom(seed + sequence * 1_000_003)
    while (!hasEnded) {
      await Promise.race([pause(random() * CALM * longestMs), ended])
      if (!hasEnded) await fault(random)
    }
  }

  async function disturbProcess(slot: number, random: () => number): Promise<void> {
    const replica = fleet.replicas.find(replica => replica.slot === slot)
    if (!replica) throw new Error(`No process runs in slot ${slot}.`)
    if (random() < KILLED) {
      counts['processes killed']++
      await fleet.kill(replica.name)
      await pause((random() * longestMs) / 4)
      await fleet.start(slot)
    } else {
      counts['processes stopped']++
      replica.pause()
      await pause(random() * longestMs)
      replica.resume()
    }
  }

  async function disturbRedis(random: () => number): Promise<void> {
    if (random() < 0.5) {
      counts['Redis killed']++
      await redis.kill()
      await pause((random() * longestMs) / 4)
      await redis.restart()
    } else {
      counts['Redis stopped']++
      redis.pause()
      await pause((random() * longestMs) / 2)
      redis.resume()
    }
  }

  const running = Promise.all([
    repeat(PROCESSES, disturbRedis),
    ...Array.from({ length: PROCESSES }, (_, slot) => repeat(slot, random => disturbProcess(slot, random)))
  ])
  return {
    async end() {
      hasEnded = true
      stopWaiting()
      await running
    },
    counts
  }
}
