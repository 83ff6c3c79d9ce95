/** The tables of the comparison, of one run or of several runs. In most of them, each program has a column. */
import { median, table } from '../report.js'
import { cases } from './cases.js'

/** The CPU time of a request is compared only if at least this share of the requests was served. */
const COMPARABLE = 0.9
/** The text of a cell that was not measured. */
export const NONE = '–'
const KILL = 'killed'
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
  const all = [...runs, ...kills]
  const rowOfKills = rowsOf(all)
  const rows = casesOf(runs).map(({ title, name }) =>
    (name === KILL ? rowOfKills : row)(title, ({ outcomes }) => measured(outcomes[name], lostUsers))
  )
  return programTable(runs, [
    ...rows.filter(cells => !isZero(cells)),
    rowOfKills('refreshes in progress when a process is killed', ({ outcomes }) =>
      measured(outcomes[KILL], ({ inProgress }) => inProgress)
    ),
    [
      'mean number of logins lost when a process is killed',
      ...runs[0].programs.map(({ name }) => atKill(all, name).mean)
    ],
    ['lost logins for each refresh in progress', ...runs[0].programs.map(({ name }) => atKill(all, name).share)]
  ])
}

/**
 * The cases in which no program signed out a user. The table of the losses has no row for them.
 * @param {LostRun[]} runs
 */
export function lossless(runs) {
  return casesOf(runs)
    .filter(({ name }) => isZero(['', ...runs[0].programs.map(program => lossCell(runs, program.name, name))]))
    .map(({ title }) => title)
}

/** @param {(string | number)[]} cells of a row, after its title */
function isZero([, ...cells]) {
  return cells.every(cell => ['0', NONE, 'no Redis'].includes(cell)) && cells.includes('0')
}

/** The mean number of lost logins at a kill, and the lost logins for each refresh in progress, from the sums of all runs. */
function atKill(runs, name) {
  const kills = resultsOf(runs, name).flatMap(({ outcomes: { [KILL]: kill } }) =>
    kill?.signedOut === undefined ? [] : [kill]
  )
  if (kills.length === 0) return { mean: NONE, share: NONE }
  const sum = key => kills.reduce((total, outcome) => total + (outcome[key] ?? 0), 0)
  return {
    mean: (sum('signedOut') / kills.length).toFixed(1),
    share: sum('inProgress') === 0 ? NONE : (sum('signedOut') / sum('inProgress')).toFixed(2)
  }
}

/**
 * The users who were signed out, for each kind of provider or page. A cell has one number for each kind.
 * @param {LostRun[][]} kinds the runs of each kind. All kinds have the cases and programs of the last one
 */
export function kindTable(kinds) {
  const last = /** @type {LostRun[]} */ (kinds.at(-1))
  const rows = casesOf(last).map(({ title, name: which }) => [
    title,
    ...last[0].programs.map(({ name }) => kinds.map(runs => lossCell(runs, name, which)).join(' / '))
  ])
  return programTable(last, rows)
}

/**
 * The users whom a program signed out in one case.
 * @param {LostRun[]} runs
 * @param {string} name the program
 * @param {string} which the case
 */
export function lossCell(runs, name, which) {
  return joined(resultsOf(runs, name).map(({ outcomes }) => measured(outcomes[which], lostUsers)))
}

/**
 * What each program needs with two processes, or with one if it has no more. Each program has a row.
 * @param {LostRun[]} runs
 */
export function costTable(runs) {
  const rows = runs[0].programs.map(({ name, title }) => {
    const cell = read =>
      joined(
        resultsOf(runs, name).map(({ outcomes, users }) => measured(outcomes['two-processes'], one => read(one, users)))
      )
    return [
      title,
      cell(({ mebibytes }) => mebibytes),
      cell(cpuTime),
      cell(({ refreshes }, users) => (refreshes / users).toFixed(1)),
      cell(({ cookieBytes }) => cookieBytes),
      // This case harms no session, and every program with a Redis plays it.
      joined(resultsOf(runs, name).map(({ outcomes }) => outcomes.restarted?.redisBytes))
    ]
  })
  return table(['', 'memory, MiB', 'CPU us', 'token requests', '`Cookie` header, bytes', 'Redis, bytes'], rows)
}

/**
 * The users who stayed signed in but got errors after a kill: the mean of each program, and of these means the smallest and the
 * largest one.
 * @param {LostRun[]} runs
 * @param {string[]} names the programs
 */
export function errorsAtKill(runs, names) {
  const means = names.map(name => {
    const waits = resultsOf(runs, name).flatMap(({ outcomes: { [KILL]: kill } }) => kill?.waited ?? [])
    return Math.round(waits.reduce((sum, waited) => sum + waited, 0) / waits.length)
  })
  return `${Math.min(...means)} to ${Math.max(...means)}`
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
 * The share of the requests that failed, and the time of 99 % of the responses. If the runs differ, it has the higher values.
 * @param {LostRun[]} runs
 * @param {LostRun[]} [kills] further runs that played only the kill
 */
export function failureTable(runs, kills = []) {
  return tableOfFaults(runs, kills, outcomes => {
    const highest = read => Math.max(...outcomes.map(read))
    const share = highest(({ failed, requests }) => (100 * failed) / requests)
    return `${share.toFixed(1)} %, ${seconds(highest(({ p99Ms }) => p99Ms))}`
  })
}

/**
 * The users who stayed signed in, but got no data for a while: their number, and the longest time. It has the run in which more
 * of the users waited, or waited for a longer time.
 * @param {LostRun[]} runs
 * @param {LostRun[]} [kills] further runs that played only the kill
 */
export function waitTable(runs, kills = []) {
  return tableOfFaults(runs, kills, outcomes => {
    const worst = outcomes.toSorted(
      (a, b) => b.waited / b.stayed - a.waited / a.stayed || b.longestWaitMs - a.longestWaitMs
    )
    const [{ stayed, waited, longestWaitMs }] = [...worst.filter(one => one.stayed > 0), ...worst]
    if (stayed === 0) return 'all lost'
    return waited === 0 ? '0' : `${waited}/${stayed}, ${seconds(longestWaitMs)}`
  })
}

/**
 * @param {LostRun[]} runs
 * @param {LostRun[]} kills further runs that played only the kill
 * @param {(outcomes: (Outcome & { stayed: number })[]) => string} write writes the results of all runs
 */
function tableOfFaults(runs, kills, write) {
  const rows = casesOf(runs).flatMap(({ name: which, title, fault }) => {
    if (!fault) return []
    const cells = runs[0].programs.map(({ name }) => {
      const results = resultsOf(which === KILL ? [...runs, ...kills] : runs, name)
      const known = results.flatMap(({ outcomes: { [which]: outcome }, users }) =>
        outcome?.signedOut === undefined
          ? []
          : [{ ...outcome, stayed: users - outcome.signedOut - (outcome.waiting ?? 0) }]
      )
      return known.length > 0 ? write(known) : joined(results.map(({ outcomes }) => absentText(outcomes[which])))
    })
    return isZero([title, ...cells]) ? [] : [[title, ...cells]]
  })
  return programTable(runs, rows)
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
 * @returns {({ users: number } & Pick<ProgramResult, 'outcomes'>)[]}
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
 * same in all runs is written once. If some runs did not play the case, the cell says how many did.
 * @param {(string | number | undefined)[]} values
 */
export function joined(values) {
  const known = values.filter(value => value !== undefined && value !== NONE)
  if (known.length === 0) return NONE
  const texts = [...new Set(known.map(String))]
  const numbers = known.filter(value => typeof value === 'number')
  const isSummary = numbers.length > MAX_LISTED && texts.length > 1
  const text = isSummary ? `${median(numbers)} (${Math.min(...numbers)} to ${Math.max(...numbers)})` : texts.join(', ')
  const isNumber = /^\d/.test(text)
  return known.length < values.length && isNumber ? `${text} (${counted(known.length)})` : text
}

/** @param {number} runs */
function counted(runs) {
  return runs === 1 ? '1 run' : `${runs} runs`
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
  if (outcome.leftOut) return 'no Redis'
  return outcome.error && 'no result'
}

/** The users who were signed out, and those who still got errors when no time was left. */
export function lostUsers({ signedOut, waiting }) {
  return waiting > 0 ? `${signedOut} (${waiting} waited)` : signedOut
}

function cpuTime({ cpuMicros, failed, requests }) {
  return failed / requests > 1 - COMPARABLE ? undefined : cpuMicros
}

function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}
