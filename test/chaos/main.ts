import { parseOptions } from './options.js'
import { createReport } from './report.js'
import { storm } from './storm.js'

const options = parseOptions(process.argv.slice(2))
const report = createReport(text => process.stdout.write(text))
for (const seed of options.seeds) {
  for (const processes of options.processes) {
    for (const mode of options.modes) {
      for (const trouble of options.troubles) {
        if (processes === 1 && trouble !== 'no further trouble') continue
        await storm(report, { seed, mode, processes, trouble, seconds: options.seconds, people: options.people })
      }
    }
  }
}
process.stdout.write(`\n  ${report.passed} checks passed\n`)
if (report.failed > 0) process.stdout.write(`  ${report.failed} checks failed\n`)
process.exitCode = report.failed > 0 ? 1 : 0
