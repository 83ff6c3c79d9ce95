// The chaos suite runs the real program while the provider, Redis, the network and the processes fail. It prints the
// results and a table, and exits with code 1 if a check failed.
import { parseOptions } from './options.js'
import { playAll } from './play-all.js'
import { busyScenarios, quietScenarios, scenarioNames } from './scenarios.js'

const print = (text: string) => process.stdout.write(text)
const options = parseOptions(process.argv.slice(2), scenarioNames, print, text => process.stderr.write(text))
if (options === 'helped') process.exitCode = 0
else if (options) {
  const playsOf = (scenarios: typeof quietScenarios) => options.only.flatMap(name => scenarios[name]?.(options) ?? [])
  process.exitCode = await playAll(
    [
      { plays: playsOf(busyScenarios), atOnce: 1 },
      { plays: playsOf(quietScenarios), atOnce: options.atOnce }
    ],
    print
  )
} else process.exitCode = 2
