// The lab: runs unmodified programs through the real server, and prints what each of them could do. `--help` lists the
// options. To add a program, write a file that exports a `Program` (program.ts) and add it to the list below.
import { parseArgs } from 'node:util'
import { chosen } from '../chaos/runner.js'
import { print } from '../report.js'
import { angular } from './angular.js'
import { customRoutes } from './custom-routes.js'
import { runPrograms } from './lab.js'
import { morePrograms } from './more-programs.js'
import type { Program } from './program.js'
import { serviceWorker } from './service-worker.js'
import { testRunners } from './test-runners.js'
import { vite } from './vite.js'

const programs: readonly Program[] = [vite, serviceWorker, angular, testRunners, customRoutes]

const all = [...morePrograms, ...programs]
const names = all.map(({ name }) => name)

const usage = `Usage: npm run test:clients [-- [--only NAME,NAME] [--verbose]]

  --only     the programs to run (default all): ${names.join(', ')}
  --verbose  prints every check, not only the failed ones

npm installs the programs once, into .cache/clients (or PLATFORM_AUTH_CLIENTS_CACHE).
`

try {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: names.join(',') },
      verbose: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help) process.stdout.write(usage)
  else {
    const wanted = chosen(names, values.only)
    const isPassed = await runPrograms(
      all.filter(({ name }) => wanted.includes(name)),
      values.verbose
    )
    if (!isPassed) process.exitCode = 1
  }
} catch (error) {
  print(`${(error as Error).message}\n\n${usage}`)
  process.exitCode = 2
}
