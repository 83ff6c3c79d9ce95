/** The measurement `lost`: it installs what it needs, and compares the programs. */
import { saveRun } from './results.js'
import { costTable, failureTable, lossTable, waitTable } from './tables.js'

/** @param {import('../options.js').Options} options */
export async function compareLost(options) {
  // bench/node_modules may have been installed only now.
  const { measureLost } = await import('./measure.js')
  const run = await measureLost(options, async run => {
    if (options.save) await saveRun(run)
  })
  return `
## lost: users who were signed out, of ${run.users}

${lossTable([run])}
## lost: what the programs need

${costTable([run])}
## lost: requests that failed, and the time of 99 % of the responses

${failureTable([run])}
## lost: users who waited, and the longest wait

${waitTable([run])}`
}
