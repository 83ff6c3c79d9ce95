/** The tables of the comparison, of one run or of several runs. */
import { table } from '../report.js'
import { cases } from './cases.js'

const MEBIBYTE = 2 ** 20
/** The CPU time of a request can be compared only if most requests were served. */
const COMPARABLE = 0.9
const NONE = '–'

/** @typedef {import('./measure.js').LostRun} LostRun */

/**
 * Returns the values of all runs, such as `0, 3`. A value that is the same in all runs is written once.
 * @param {(string | number | undefined)[]} values
 */
export function joined(values) {
  const texts = values.map(value => String(value ?? NONE))
  return new Set(texts).size === 1 ? texts[0] : texts.join(', ')
}

/**
 * @param {import('./measure.js').Outcome | undefined} outcome
 * @returns {string} the people who were signed out, and those who still waited
 */
export function lostIn(outcome) {
  if (outcome === undefined) return NONE
  if (outcome.impossible) return 'not possible'
  if (outcome.error) return 'no result'
  return outcome.waiting > 0 ? `${outcome.signedOut} (${outcome.waiting} waited)` : String(outcome.signedOut)
}

/**
 * The table of all figures. Each program has a column, so that its better and its worse figures are in one place.
 * @param {LostRun[]} runs
 */
export function runTable(runs) {
  const [first] = runs
  const names = first.programs.map(({ name }) => name)
  const outcomesOf = (name, which) => runs.map(run => run.programs.find(one => one.name === name)?.outcomes[which])
  const row = (title, cell) => [title, ...names.map(cell)]
  const played = cases.filter(({ name }) => runs.some(run => run.programs.some(({ outcomes }) => name in outcomes)))
  const one = which => name => outcomesOf(name, which)
  const measured = (key, format = value => value) => {
    return name => joined(one('one-process')(name).map(outcome => outcome?.[key] && format(outcome[key], outcome)))
  }
  const sums = key => name =>
    joined(
      runs.map(run => {
        const outcomes = Object.values(run.programs.find(one => one.name === name)?.outcomes ?? {})
        return outcomes.reduce((sum, outcome) => sum + (outcome[key] ?? 0), 0)
      })
    )
  const failed = name =>
    joined(
      runs.map(run => {
        const outcomes = Object.values(run.programs.find(one => one.name === name)?.outcomes ?? {})
        const all = outcomes.reduce((sum, { requests = 0 }) => sum + requests, 0)
        const some = outcomes.reduce((sum, { failed = 0 }) => sum + failed, 0)
        return all === 0 ? undefined : `${((100 * some) / all).toFixed(1)} %`
      })
    )
  return table(
    ['', ...first.programs.map(({ title }) => title)],
    [
      ...played.map(({ title, name: which }) =>
        row(`signed out: ${title}`, name => joined(outcomesOf(name, which).map(lostIn)))
      ),
      row('refresh tokens sent twice, all cases', sums('sentTwice')),
      row('requests that failed, all cases', failed),
      row(
        'longest time of a response without a fault',
        measured('longestMs', ms => `${(ms / 1000).toFixed(1)} s`)
      ),
      row('time until everyone was served or signed out, after a process was killed', name =>
        joined(
          outcomesOf(name, 'killed').map(outcome => outcome?.settledMs && `${(outcome.settledMs / 1000).toFixed(0)} s`)
        )
      ),
      row('memory, one process, MiB', measured('mebibytes')),
      row('CPU time of a request, one process, us', measured('cpuMicros', comparable)),
      row('`Cookie` header, bytes', measured('cookieBytes')),
      row('executables, MiB', name => {
        const { executableBytes } = first.programs.find(one => one.name === name)
        return executableBytes === undefined ? NONE : Math.round(executableBytes / MEBIBYTE)
      })
    ]
  )
}

function comparable(micros, { failed, requests }) {
  return failed / requests > 1 - COMPARABLE ? undefined : micros
}
