/** The measurement `lost`: it plays the cases with each program, and prints a table of the users who were signed out. */
import { table } from '../report.js'
import { cases } from './cases.js'
import { saveRun } from './saved.js'

/** @type {import('../ratios.js').Measurement} */
export async function compareLost(_around, options) {
  // bench/node_modules may have been installed only now.
  const { measureLost } = await import('./measure.js')
  const run = await measureLost(options, async run => {
    if (options.save) await saveRun(run)
  })
  const played = cases.filter(({ name }) => run.programs.some(({ outcomes }) => name in outcomes))
  const rows = played.map(({ name, title }) => [title, ...run.programs.map(({ outcomes }) => cellOf(outcomes[name]))])
  const head = ['', ...run.programs.map(({ title }) => title)]
  return { text: `\n## lost: users who were signed out, of ${run.users}, and who got errors\n\n${table(head, rows)}` }
}

/** @param {import('./measure.js').Outcome} [outcome] */
function cellOf({ signedOut = '–', waited = 0 } = {}) {
  return waited > 0 ? `${signedOut}, errors ${waited}` : signedOut
}
