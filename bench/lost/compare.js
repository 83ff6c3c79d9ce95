/** The measurement `lost`: it installs what it needs, compares the programs, and writes the page. */
import { writePage } from './page.js'
import { saveRun } from './results.js'
import { failureTable, latencyTable, runTable } from './tables.js'

/** @param {import('../options.js').Options} options */
export async function compareLost(options) {
  // bench/node_modules may have been installed only now.
  const { measureLost } = await import('./measure.js')
  const run = await measureLost(options, async run => {
    if (options.writeDocs) await saveRun(run)
  })
  if (options.writeDocs) await writePage()
  return `\n## lost: users who were signed out, of ${run.users}\n\n${runTable([run])}\n## lost: requests that failed\n\n${failureTable([run])}\n## lost: longest responses\n\n${latencyTable([run])}`
}
