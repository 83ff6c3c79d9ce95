// The lab: runs unmodified programs through the real server, and prints what each of them could do. `--help` lists the
// options. To add a program, write a file that exports a `Program` (lab.ts) and add it to the list below.
import { runSuite } from '../suite.js'
import { angular } from './angular.js'
import { apsSdk } from './aps-sdk.js'
import { customRoutes } from './custom-routes.js'
import { forgeServerUtils } from './forge-server-utils.js'
import { type Program, playOf } from './lab.js'
import { next } from './next.js'
import { packageManagers } from './package-managers.js'
import { serviceWorker } from './service-worker.js'
import { svfUtils } from './svf-utils.js'
import { testRunners } from './test-runners.js'
import { turbo } from './turbo.js'
import { vite } from './vite.js'

const ofThePlatform: readonly Program[] = [apsSdk, forgeServerUtils, svfUtils]
const ofFrameworks: readonly Program[] = [turbo, next, vite, serviceWorker, angular]
const ofProgrammers: readonly Program[] = [testRunners, customRoutes, packageManagers]

const programs = [...ofThePlatform, ...ofFrameworks, ...ofProgrammers]

await runSuite({
  script: 'test:clients',
  names: programs.map(({ name }) => name),
  remark: 'npm installs the programs once, into .cache/clients (or PLATFORM_AUTH_CLIENTS_CACHE).',
  plays: only => programs.filter(({ name }) => only.includes(name)).map(playOf)
})
