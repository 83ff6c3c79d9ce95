// The chaos suite: the real program under everything that can go wrong around it. Prints what happened; ends with code 1
// when a login was lost that could have been saved.
import { killedOwner } from './killed-owner.js'
import { type Options, parseOptions, type Scenario } from './options.js'
import { providerOutage } from './provider-outage.js'
import { redisOutage } from './redis-outage.js'
import { createReport, type Report } from './report.js'
import { storm } from './storm.js'
import { thousandRequests } from './thousand.js'

const play: Readonly<Record<Scenario, (report: Report, options: Options) => Promise<void>>> = {
  async storm(report, { seeds, processes, modes, troubles, seconds, people }) {
    for (const seed of seeds) {
      for (const count of processes) {
        for (const mode of modes) {
          for (const trouble of count > 1 ? troubles : (['none'] as const)) {
            await storm(report, { seed, mode, processes: count, trouble, seconds, people })
          }
        }
      }
    }
  },
  async thousand(report, { modes }) {
    for (const mode of modes) await thousandRequests(report, { seed: 1, mode })
  },
  async 'killed-owner'(report, { modes }) {
    for (const mode of modes) await killedOwner(report, { seed: 1, mode, moment: 'first' })
    if (modes.includes('dual')) await killedOwner(report, { seed: 1, mode: 'dual', moment: 'second' })
  },
  'redis-outage': (report, { full }) =>
    redisOutage(report, { seed: 1, mode: 'dual', people: 60, outageSeconds: full ? 30 : 6 }),
  'provider-outage': (report, { full }) =>
    providerOutage(report, { seed: 1, processes: 1, outageSeconds: full ? 30 : 6 })
}

const options = parseOptions(
  process.argv.slice(2),
  text => process.stdout.write(text),
  text => process.stderr.write(text)
)
if (options === 'helped') process.exitCode = 0
else if (options) {
  const report = createReport(text => process.stdout.write(text))
  for (const scenario of options.only) {
    await play[scenario](report, options).catch((error: Error) =>
      report.check('played to its end', false, error.message)
    )
  }
  const { passed, failed } = report
  process.stdout.write(`\n  ${passed} checks passed\n${failed > 0 ? `  ${failed} checks failed\n` : ''}`)
  process.exitCode = failed > 0 ? 1 : 0
} else process.exitCode = 2
