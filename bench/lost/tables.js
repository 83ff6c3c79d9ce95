/** The tables of the comparison, of one run or of several runs. Each program has a column. */
import { table } from '../report.js'
import { cases } from './cases.js'

const MEBIBYTE = 2 ** 20
/** The CPU time of a request is compared only if at least this share of the requests was served. */
const COMPARABLE = 0.9
const NONE = '–'
/** The time between two refreshes of a user in the comparison: 8 in 24 s. */
export const BETWEEN_REFRESHES_SECONDS = 3
const HOUR_SECONDS = 3600
const MANY = 10_000
/** A program with a result in at most this share of the cases takes part in few. */
const FEW = 1 / 4
const KILL = 'killed'
const IDLE = 'redis-empty-idle'
/** More runs than this are summarized. */
const MAX_LISTED = 3

/**
 * @typedef {import('./measure.js').LostRun} LostRun
 * @typedef {import('./measure.js').Outcome} Outcome
 * @typedef {import('./measure.js').ProgramResult} ProgramResult
 */

/**
 * The users who were signed out in each case.
 * @param {LostRun[]} runs
 * @param {LostRun[]} [kills] further runs that played only the kill
 */
export function lossTable(runs, kills = []) {
  const row = rowsOf(runs)
  const rowOfKills = rowsOf([...runs, ...kills])
  const rows = casesOf(runs).map(({ title, name }) =>
    (name === KILL ? rowOfKills : row)(title, ({ outcomes }) => measured(outcomes[name], lostUsers))
  )
  return programTable(runs, [
    ...rows,
    rowOfKills('refreshes in progress at the kill', ({ outcomes }) =>
      measured(outcomes[KILL], ({ inProgress }) => inProgress)
    )
  ])
}

/**
 * What each program needs, with two processes and a Redis if the program can use it.
 * @param {LostRun[]} runs
 */
export function costTable(runs) {
  const row = rowsOf(runs)
  const lowest = (title, read) => withBest(row(title, read))
  return programTable(runs, [
    lowest('memory, MiB', ({ outcomes }) => measured(outcomes['two-processes'], ({ mebibytes }) => mebibytes)),
    lowest('CPU time of a request, us', ({ outcomes }) => measured(outcomes['two-processes'], cpuTime)),
    row('refresh requests of a user', ({ outcomes, users }) =>
      measured(outcomes['two-processes'], outcome => refreshesOf(outcome, users))
    ),
    lowest('`Cookie` header, bytes', ({ outcomes }) =>
      measured(outcomes['two-processes'], ({ cookieBytes }) => cookieBytes)
    ),
    lowest('executables, MiB', ({ executableBytes }) => executableBytes && Math.round(executableBytes / MEBIBYTE))
  ])
}

/**
 * The users who were signed out, for each kind of provider or page. A cell has one number for each kind.
 * @param {LostRun[][]} kinds the runs of each kind. All kinds have the cases and programs of the last one
 */
export function kindTable(kinds) {
  const last = /** @type {LostRun[]} */ (kinds.at(-1))
  const rows = casesOf(last).map(({ title, name: which }) => [
    title,
    ...last[0].programs.map(({ name }) => kinds.map(runs => lostOfKind(runs, name, which)).join(' / '))
  ])
  return programTable(last, rows)
}

function lostOfKind(runs, name, which) {
  return joined(resultsOf(runs, name).map(({ outcomes }) => measured(outcomes[which], lostUsers)))
}

function programTable([{ programs }], rows) {
  return table(['', ...programs.map(({ title }) => title)], rows)
}

/** Returns a function that makes the row of a table, with a cell for each program. */
function rowsOf(runs) {
  const [{ programs }] = runs
  return (title, read) => [title, ...programs.map(({ name }) => joined(resultsOf(runs, name).map(read)))]
}

/**
 * The table of the requests that failed.
 * @param {LostRun[]} runs
 */
export function failureTable(runs) {
  return tableOfCases(runs, failedShare, ([share]) => `${share.toFixed(1)} %`)
}

/**
 * Leaves out the programs that take part in a few cases only, and those that lose most logins without a fault. The first table
 * has their results.
 */
function comparable(runs) {
  const played = casesOf(runs)
  const isLostWithoutFault = ({ outcomes, users }) =>
    ['one-process', 'two-processes'].some(name => (outcomes[name]?.signedOut ?? 0) > users / 2)
  return runs[0].programs.filter(({ name, outcomes }) => {
    const known = played.filter(({ name }) => outcomes[name]?.signedOut !== undefined)
    return known.length > played.length * FEW && !resultsOf(runs, name).some(isLostWithoutFault)
  })
}

/**
 * @param {LostRun[]} runs
 * @param {(outcome: Outcome) => number | number[] | undefined} read
 * @param {(values: number[]) => string} write writes the higher values of the runs
 */
function tableOfCases(runs, read, write) {
  const programs = comparable(runs)
  const cell = which => program => {
    const values = resultsOf(runs, program.name).map(({ outcomes }) => measured(outcomes[which.name], read))
    const lists = values.filter(Array.isArray)
    if (lists.length === 0) return joined(values)
    return write(lists[0].map((_, index) => Math.max(...lists.map(list => list[index]))))
  }
  const rows = casesOf(runs).map(which => [which.title, ...programs.map(cell(which))])
  return programTable([{ programs }], rows)
}

/**
 * The table of the slowest responses: the time of 99 % of them, and the longest one. If the runs differ, it has the higher values.
 * @param {LostRun[]} runs
 */
export function latencyTable(runs) {
  return tableOfCases(
    runs,
    ({ p99Ms, longestMs }) => [p99Ms, longestMs],
    times => times.map(seconds).join(' / ')
  )
}

/**
 * The table of the users who got no data for a while: their number, and the longest time. If the runs differ, it has the higher
 * values.
 * @param {LostRun[]} runs
 */
export function waitTable(runs) {
  return tableOfCases(
    runs,
    ({ waited, longestWaitMs }) => [waited, longestWaitMs],
    ([waited, longest]) => (waited === 0 ? '0' : `${waited}, ${seconds(longest)}`)
  )
}

/**
 * How many of 10,000 users one fault signs out if access tokens live for an hour, computed from the measured rates. With short
 * tokens, every user refreshes at least once during a fault that lasts longer than the time between two refreshes. With tokens
 * of an hour, only those users meet the fault whose refresh falls into it.
 * @param {LostRun[]} runs
 * @param {LostRun[]} [kills] further runs that played only the kill
 */
export function hourTable(runs, kills = []) {
  const programs = comparable(runs)
  const all = [...runs, ...kills]
  const rows = casesOf(runs).flatMap(which => {
    if (!which.fault || which.name === IDLE) return []
    const cells = programs.map(program => {
      const results = resultsOf(all, program.name).map(result => ({ ...result, outcome: outcomeOfHour(result, which) }))
      const known = results.filter(({ outcome }) => outcome?.signedOut !== undefined)
      if (known.length === 0) return joined(results.map(({ outcome }) => absentText(outcome)))
      return rounded((MANY * known.reduce((sum, result) => sum + hourShare(result, which), 0)) / known.length)
    })
    return [[which.title, ...cells]]
  })
  return programTable([{ programs }], rows)
}

/** Users who are idle for a minute are the usual case if tokens live for an hour. */
function outcomeOfHour({ outcomes }, { name }) {
  return (name === 'redis-empty' && outcomes[IDLE]) || outcomes[name]
}

/**
 * A Redis that fails can sign out every user, whether tokens are refreshed or not. Only the users whose refresh token was sent
 * twice would not have met it with longer tokens.
 */
function hourShare({ users, outcome: { signedOut, revoked = 0 } }, { fault, needsRedis }) {
  const meeting = Math.max(fault.lastsMs / 1000, BETWEEN_REFRESHES_SECONDS) / HOUR_SECONDS
  if (!needsRedis) return (signedOut / users) * meeting
  const byRefresh = signedOut === users ? 0 : Math.min(signedOut, revoked)
  return (signedOut - byRefresh + byRefresh * meeting) / users
}

/**
 * The cases that were played.
 * @param {LostRun[]} runs
 */
export function casesOf(runs) {
  return cases.filter(({ name }) => runs.some(run => run.programs.some(({ outcomes }) => name in outcomes)))
}

/**
 * The results of a program, one for each run.
 * @param {LostRun[]} runs
 * @param {string} name
 * @returns {({ users: number } & Pick<ProgramResult, 'outcomes' | 'executableBytes'>)[]}
 */
export function resultsOf(runs, name) {
  return runs.map(({ programs, users }) => ({
    users,
    outcomes: {},
    ...programs.find(program => program.name === name)
  }))
}

/**
 * Returns the values of all runs, such as `0, 3`, or their median and range if there are more than three. A value that is the
 * same in all runs is written once. A run that did not play the case has no value.
 * @param {(string | number | undefined)[]} values
 */
export function joined(values) {
  const numbers = values.filter(value => typeof value === 'number').sort((a, b) => a - b)
  const [lowest, highest] = [numbers[0], numbers.at(-1)]
  if (numbers.length > MAX_LISTED && lowest !== highest) {
    return `${medianOf(numbers)} (${lowest} to ${highest})`
  }
  const texts = new Set(values.map(value => String(value ?? NONE)))
  if (texts.size > 1) texts.delete(NONE)
  return [...texts].join(', ')
}

/** @param {number[]} sorted */
function medianOf(sorted) {
  const middle = sorted.length / 2
  return (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2
}

/** Shows the lowest values of a row in bold. If the runs differ, the first run decides. */
function withBest([title, ...cells]) {
  const numbers = cells.map(cell => Number.parseFloat(cell))
  const best = Math.min(...numbers.filter(number => !Number.isNaN(number)))
  return [title, ...cells.map((cell, index) => (numbers[index] === best ? `**${cell}**` : cell))]
}

/**
 * @param {Outcome | undefined} outcome
 * @param {(outcome: Outcome) => string | number | undefined} read
 */
function measured(outcome, read) {
  return absentText(outcome) ?? read(outcome)
}

/**
 * Returns what a cell says if there is no result.
 * @param {Outcome | undefined} outcome
 */
export function absentText(outcome) {
  if (outcome === undefined) return NONE
  if (outcome.impossible) return 'not possible'
  if (outcome.leftOut) return 'left out'
  return outcome.error && 'no result'
}

/** A program that loses logins sends fewer of them. Dual mode and the tutorial send two for each refresh. */
function refreshesOf({ refreshes }, users) {
  return (refreshes / users).toFixed(1)
}

/** The users who were signed out, and those who still got errors when no time was left. */
export function lostUsers({ signedOut, waiting }) {
  return waiting > 0 ? `${signedOut} (${waiting} waited)` : signedOut
}

function failedShare({ failed, requests }) {
  return [(100 * failed) / requests]
}

function cpuTime({ cpuMicros, failed, requests }) {
  return failed / requests > 1 - COMPARABLE ? undefined : cpuMicros
}

function rounded(value) {
  if (value === 0) return '0'
  return value < 10 ? value.toFixed(1) : String(Math.round(value))
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}
