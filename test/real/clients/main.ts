// The lab: runs unmodified programs through the real server, and prints what each of them could do. `--help` lists the
// options. To add a program, write a file that exports a `Program` (program.ts) and add it to the list below.
import { parseArgs } from 'node:util'
import { chosen } from '../chaos/runner.js'
import { print } from '../report.js'
import { angular } from './angular.js'
import { apsSdk } from './aps-sdk.js'
import { customRoutes } from './custom-routes.js'
import { forgeServerUtils } from './forge-server-utils.js'
import { runPrograms } from './lab.js'
import { next } from './next.js'
import { packageManagers } from './package-managers.js'
import type { Program } from './program.js'
import { requestLines } from './request-lines.js'
import { serviceWorker } from './service-worker.js'
import { svfUtils } from './svf-utils.js'
import { testRunners } from './test-runners.js'
import { turbo } from './turbo.js'
import { vite } from './vite.js'

const ofThePlatform: readonly Program[] = [requestLines, apsSdk, forgeServerUtils, svfUtils]
const ofFrameworks: readonly Program[] = [turbo, next, vite, serviceWorker, angular]
const ofProgrammers: readonly Program[] = [testRunners, customRoutes, packageManagers]

const programs = [...ofThePlatform, ...ofFrameworks, ...ofProgrammers]
const names = programs.map(({ name }) => name)

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
      programs.filter(({ name }) => wanted.includes(name)),
      values.verbose
    )
    if (!isPassed) process.exitCode = 1
  }
} catch (error) {
  print(`${(error as Error).message}\n\n${usage}`)
  process.exitCode = 2
}
