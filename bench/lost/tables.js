/** The tables of the comparison, of one run or of several runs. Each program has a column. */
import { table } from '../report.js'
import { cases } from './cases.js'

const MEBIBYTE = 2 ** 20
/** The CPU time of a request is compared only if at least this share of the requests was served. */
const COMPARABLE = 0.9
const NONE = '–'

/**
 * @typedef {import('./measure.js').LostRun} LostRun
 * @typedef {import('./measure.js').Outcome} Outcome
 * @typedef {import('./measure.js').ProgramResult} ProgramResult
 */

/**
 * The table of all figures, with the better and the worse ones of each program in one place.
 * @param {LostRun[]} runs
 */
export function runTable(runs) {
  const [{ programs }] = runs
  const row = (title, read) => [title, ...programs.map(({ name }) => joined(resultsOf(runs, name).map(read)))]
  const lowest = (title, read) => withBest(row(title, read))
  return table(
    ['', ...programs.map(({ title }) => title)],
    [
      ...casesOf(runs).map(({ title, name }) =>
        row(`signed out: ${title}`, ({ outcomes }) => measured(outcomes[name], lostUsers))
      ),
      row('refresh tokens sent twice, all cases', result => total(result, 'sentTwice')),
      row('refresh requests for a user, one process', ({ outcomes, users }) =>
        measured(outcomes['one-process'], outcome => refreshesOf(outcome, users))
      ),
      row('longest response without a fault', ({ outcomes }) =>
        measured(outcomes['one-process'], ({ longestMs }) => seconds(longestMs, 1))
      ),
      row('after a kill, everyone was served or signed out within', ({ outcomes }) =>
        measured(outcomes.killed, ({ settledMs }) => seconds(settledMs, 0))
      ),
      lowest('memory, one process, MiB', ({ outcomes }) =>
        measured(outcomes['one-process'], ({ mebibytes }) => mebibytes)
      ),
      lowest('CPU time of a request, one process, us', ({ outcomes }) => measured(outcomes['one-process'], cpuTime)),
      lowest('`Cookie` header, bytes', ({ outcomes }) =>
        measured(outcomes['one-process'], ({ cookieBytes }) => cookieBytes)
      ),
      lowest('executables, MiB', ({ executableBytes }) => executableBytes && Math.round(executableBytes / MEBIBYTE))
    ]
  )
}

/**
 * The table of the requests that failed.
 * @param {LostRun[]} runs
 */
export function failureTable(runs) {
  const [{ programs }] = runs
  const cell = which => program =>
    joined(resultsOf(runs, program.name).map(({ outcomes }) => measured(outcomes[which.name], failedShare)))
  const rows = casesOf(runs).map(which => [which.title, ...programs.map(cell(which))])
  return table(['', ...programs.map(({ title }) => title)], rows)
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
 * Returns the values of all runs, such as `0, 3`. A value that is the same in all runs is written once. A run that did not
 * play the case has no value.
 * @param {(string | number | undefined)[]} values
 */
export function joined(values) {
  const texts = new Set(values.map(value => String(value ?? NONE)))
  if (texts.size > 1) texts.delete(NONE)
  return [...texts].join(', ')
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
  return `${((100 * failed) / requests).toFixed(1)} %`
}

function total({ outcomes }, key) {
  const values = Object.values(outcomes).flatMap(outcome => outcome[key] ?? [])
  return values.length > 0 ? values.reduce((sum, value) => sum + value, 0) : undefined
}

function cpuTime({ cpuMicros, failed, requests }) {
  return failed / requests > 1 - COMPARABLE ? undefined : cpuMicros
}

function seconds(ms, digits) {
  return `${(ms / 1000).toFixed(digits)} s`
}
