// The lab: runs unmodified programs through the real server, and prints what each of them could do. `--help` lists the
// options. To add a program, write a file that exports a `Program` (lab.ts) and add it to the list below.
import { runSuite } from '../suite.js'
import { angular } from './angular.js'
import { customRoutes } from './custom-routes.js'
import { htmx } from './htmx.js'
import { type Program, playOf } from './lab.js'
import { next } from './next.js'
import { packageManagers } from './package-managers.js'
import { apsSdk, forgeServerUtils } from './sdks.js'
import { serviceWorker } from './service-worker.js'
import { testRunners } from './test-runners.js'
import { turbo } from './turbo.js'
import { vite } from './vite.js'

const ofFrameworks = [turbo, htmx, next, vite, serviceWorker, angular]
const programs: readonly Program[] = [
  ...[apsSdk, forgeServerUtils, ...ofFrameworks],
  ...[testRunners, customRoutes, packageManagers]
]

await runSuite({
  script: 'test:clients',
  names: programs.map(({ name }) => name),
  remark: 'npm installs the programs once, into .cache/clients (or PLATFORM_AUTH_CLIENTS_CACHE).',
  plays: only => programs.filter(({ name }) => only.includes(name)).map(playOf)
})
