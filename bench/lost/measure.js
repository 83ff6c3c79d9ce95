/**
 * Measures how many users lose their login, in this server and in its alternatives. Every program
 * meets the same provider, the same users and the same faults.
 */
import { randomBytes } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { describeMachine } from '../machine.js'
import { ANY_CORE, startProcess } from '../processes.js'
import { print, table } from '../report.js'
import { API_PATH } from '../settings.js'
import { cases, takesPart } from './cases.js'
import { startFleet } from './fleet.js'
import { ORIGIN } from './programs/common.js'
import { programs } from './programs/index.js'
import { between, createRandom } from './random.js'
import { saveRun } from './saved.js'
import { createTally } from './user.js'
import { createUsers } from './users.js'

const MEBIBYTE = 2 ** 20
const NANOSECONDS_PER_MS = 1e6
const BETWEEN_REPORTS_MS = 1000
/** A fault begins at a moment within these limits, which the seed draws. The range is two lifetimes of a token. */
const [EARLIEST_FAULT_MS, LATEST_FAULT_MS] = [2000, 6000]
const FAULT_SEED = 104_729
/** If the generator itself is later than this, the machine was too busy, and the case is played again. */
const MAX_DELAY_MS = 200
const MAX_PLAYS = 3
/** With the start, and the time until everyone's outcome is known. */
const LONGEST_CASE_MS = 300_000
const LONGEST_COMPLAINT = 1000

/**
 * The result of one program in one case.
 * @typedef {object} Outcome
 * @property {string} [error] why there is none
 * @property {number} [signedOut] users who must sign in again
 * @property {number} [waiting] users who still got errors at the end
 * @property {number} [waited] users who got no data for a while and are signed in at the end
 * @property {number} [longestWaitMs] the longest of these times
 * @property {number} [inProgress] refreshes that the provider had not responded to when the fault began
 * @property {number} [cpuMicros] CPU time of the program for one request
 * @property {number} [mebibytes] memory of the program at the end
 * @property {number} [redisBytes] the memory of all keys in Redis for one user, if no fault has harmed Redis
 * @property {number} [delayMs] the longest delay of a timer of the benchmark, which shows whether the machine was overloaded
 *
 * @typedef {{ name: string, title: string, version?: string, missing?: string, outcomes: Record<string, Outcome> }} ProgramResult
 * @typedef {{ seed: number, users: number, reuse?: import('./logins.js').Reuse, pages?: import('./user.js').PageKind,
 *   date: string, machine: ReturnType<typeof describeMachine>, programs: ProgramResult[] }} LostRun
 */

/** @type {import('../ratios.js').Measurement} */
export async function compareLost(_around, options) {
  const run = await measureLost(options)
  const played = cases.filter(({ name }) => run.programs.some(({ outcomes }) => name in outcomes))
  const rows = played.map(({ name, title }) => [title, ...run.programs.map(({ outcomes }) => cellOf(outcomes[name]))])
  const head = ['', ...run.programs.map(({ title }) => title)]
  return { text: `\n## lost: users who were signed out, of ${run.users}, and who got errors\n\n${table(head, rows)}` }
}

/** @param {Outcome} [outcome] */
function cellOf({ signedOut = '–', waited = 0 } = {}) {
  return waited > 0 ? `${signedOut}, errors ${waited}` : signedOut
}

/** @returns {Promise<LostRun>} */
async function measureLost({ seed, users, reuse, pages, programs: programNames, cases: caseNames, save }) {
  // The programs have process groups of their own. They end when this process exits.
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  const chosen = pick(programs, programNames, 'program')
  const wanted = pick(cases, caseNames, 'case')
  const provider = startProcess('lost/provider.js', ANY_CORE)
  const date = new Date().toISOString().slice(0, 10)
  const run = { seed, users, reuse, pages, date, machine: describeMachine(), programs: [] }
  try {
    const providerUrl = await provider.ask('listen')
    for (const program of chosen) {
      const { name, title } = program
      const result = { name, title, ...prepare(program), outcomes: {} }
      run.programs.push(result)
      if (result.missing) print(`${title} is skipped: ${result.missing}`)
      for (const which of result.missing ? [] : wanted.filter(one => takesPart(program, one))) {
        const outcome = await outcomeOf(program, which, { provider, providerUrl, seed, users, reuse, pages })
        result.outcomes[which.name] = outcome
        print(`${title}, ${which.title}: ${JSON.stringify(outcome)}`)
      }
      // A later failure loses nothing.
      if (save) await saveRun(run)
    }
    return run
  } finally {
    await provider.stop()
  }
}

/** Installs a program, and returns what is known about it before it runs. */
function prepare(program) {
  try {
    const missing = program.install?.()
    return missing ? { missing } : { version: program.version() }
  } catch (error) {
    return { missing: error.message }
  }
}

async function outcomeOf(program, which, around) {
  try {
    for (let plays = 1; plays <= MAX_PLAYS; plays++) {
      const outcome = await runCase(program, which, around)
      if (outcome.delayMs <= MAX_DELAY_MS) return outcome
      print(
        `${program.title}, ${which.title}: the benchmark was ${outcome.delayMs} ms late, so this play does not count`
      )
    }
    return { error: `the benchmark was more than ${MAX_DELAY_MS} ms late in ${MAX_PLAYS} plays` }
  } catch (error) {
    print(error.stack)
    // The rest of the message can contain paths of this machine, and results are saved in the repository.
    return { error: error.message.split('\n')[0] }
  }
}

async function runCase(program, which, around) {
  const { provider, providerUrl, seed, reuse } = around
  const lifetimeSeconds = which.lifetimeSeconds ?? program.lifetimeSeconds
  await provider.ask('begin', { seed, lifetimeSeconds, reuse })
  const secret = randomBytes(24).toString('base64url')
  const fleet = await startFleet(program, which, {
    secret,
    providerUrl,
    apiUrl: providerUrl + API_PATH,
    lifetimeSeconds
  })
  try {
    return await Promise.race([play(program, which, fleet, around), rejectAfter(LONGEST_CASE_MS)])
  } catch (error) {
    const printed = fleet.printed().map(text => text.slice(-LONGEST_COMPLAINT))
    throw new Error([error.message, ...printed].join('\n'))
  } finally {
    await fleet.end()
  }
}

async function play({ loginPath, path, isSticky }, which, fleet, { provider, seed, users: count, pages }) {
  const { seconds, fault, faultAfterMs = 0, idleMs = 0 } = which
  const tally = createTally()
  const weather = { cutShare: 0 }
  const watch = watchRevoked(provider)
  const delay = monitorEventLoopDelay()
  const { ports } = fleet
  const { isRevoked } = watch
  const surroundings = { origin: ORIGIN, loginPath, path, pages, isSticky, ports, tally, weather, isRevoked }
  const users = createUsers(count, seed, surroundings)
  try {
    await users.signInAll()
    const cpuBefore = fleet.usage().cpuMicros
    delay.enable()
    let inProgress
    const stage = {
      fleet,
      weather,
      slowProvider: ms => provider.ask('slow', ms),
      failProvider: status => provider.ask('fail', status)
    }
    const random = createRandom(seed * FAULT_SEED)
    const untilFaultMs = faultAfterMs + between(random, EARLIEST_FAULT_MS, LATEST_FAULT_MS)
    const begin = async () => {
      inProgress = (await provider.ask('report')).inProgress
      await fault.begin(stage)
    }
    const end = performance.now() + seconds * 1000
    await during(fault && { ...fault, begin }, stage, untilFaultMs, async () => {
      await pause(idleMs)
      await users.live(() => performance.now() > end)
    })
    delay.disable()
    const { cpuMicros, residentBytes } = fleet.usage()
    const cookieBytes = users.cookieBytes()
    const settled = await users.settleAll()
    const sessionBytes = which.needsRedis ? undefined : fleet.redisBytes()
    const redisBytes = sessionBytes && Math.round(sessionBytes / count)
    return {
      ...settled,
      inProgress,
      // A fault may have ended a process, and its CPU time would be missing.
      ...(!fault && { cpuMicros: Math.round((cpuMicros - cpuBefore) / tally.requests) }),
      mebibytes: Math.round(residentBytes / MEBIBYTE),
      cookieBytes,
      redisBytes,
      delayMs: Math.round(delay.max / NANOSECONDS_PER_MS)
    }
  } finally {
    watch.stop()
  }
}

/** Runs a fault while users live. If everyone has given up before its end, the rest of the fault is not needed. */
async function during(fault, stage, untilFaultMs, live) {
  const end = new AbortController()
  const harm = async () => {
    await pause(untilFaultMs, undefined, end)
    await fault.begin(stage)
    await pause(fault.lastsMs, undefined, end)
    await fault.end(stage)
  }
  const outcome = fault && harm().catch(error => error)
  await live()
  end.abort()
  const error = await outcome
  if (error && error.name !== 'AbortError') throw error
}

/** Asks the provider regularly whose login it has ended. */
function watchRevoked(provider) {
  let users = new Set()
  const timer = setInterval(async () => {
    // If the provider does not answer, the case fails for this reason.
    const report = await provider.ask('report').catch(() => undefined)
    if (report) users = new Set(report.revokedUsers)
  }, BETWEEN_REPORTS_MS)
  return { isRevoked: id => users.has(id), stop: () => clearInterval(timer) }
}

async function rejectAfter(ms) {
  await pause(ms, undefined, { ref: false })
  throw new Error('The case took too long.')
}

function pick(all, names, what) {
  if (names === undefined) return all
  const unknown = names.find(name => !all.some(one => one.name === name))
  if (unknown)
    throw new Error(`There is no ${what} "${unknown}". There are: ${all.map(({ name }) => name).join(', ')}.`)
  return all.filter(({ name }) => names.includes(name))
}
