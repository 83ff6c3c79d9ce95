// Package managers and a bundler: each installs the packed package in an empty folder, in which the program then runs and every
// export can be imported.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { version } from '#src/base/package.js'
import { packInto } from '../../helpers/packed.js'
import { startProgram } from '../../helpers/program.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import type { Lab, Program } from './lab.js'
import { filesOf } from './recipes.js'

const files = {
  'package.json': '{"private": true}',
  // Without this file, Yarn looks for a project in the folders above.
  'yarn.lock': '',
  '.yarnrc.yml': 'nodeLinker: pnp\nenableGlobalCache: false\nenableTelemetry: false\n',
  ...filesOf('package-managers')
}
const printed = 'Ada Lovelace function object\n'

type Command = readonly string[]

interface Manager {
  readonly name: string
  /** Installs the package. The path of the tarball follows. */
  readonly add: Command
  /** Runs the program of the package. Its arguments follow. */
  readonly execute: Command
  /** Runs a program that imports the package. Its path follows. */
  readonly node: Command
}

const node = process.execPath
const bunPackage = `@oven/bun-${process.platform}-${process.arch === 'arm64' ? 'aarch64' : process.arch}`

function managersIn(modules: string): readonly Manager[] {
  const pnpm = [node, join(modules, 'pnpm/bin/pnpm.mjs')]
  const yarn = [node, join(modules, '@yarnpkg/cli-dist/bin/yarn.js')]
  const bun = join(modules, bunPackage, 'bin/bun')
  return [
    { name: 'npm', add: ['npm', 'install'], execute: ['npx', '--offline', 'platform-auth-server'], node: [node] },
    { name: 'pnpm', add: [...pnpm, 'add'], execute: [...pnpm, 'exec', 'platform-auth-server'], node: [node] },
    {
      name: "Yarn with Plug'n'Play",
      add: [...yarn, 'add'],
      execute: [...yarn, 'platform-auth-server'],
      node: [...yarn, 'node']
    },
    { name: 'Bun', add: [bun, 'add'], execute: [bun, 'x', 'platform-auth-server'], node: [node] }
  ]
}

export const packageManagers: Program = {
  name: 'package-managers',
  packages: ['@yarnpkg/cli-dist@4.18.1', 'bun@1.4.4', 'esbuild@0.28.2', 'pnpm@12.4.2'],
  async run(lab) {
    const modules = join(lab.folder, 'node_modules')
    const tarball = packInto(await tempFolder(lab))
    for (const manager of managersIn(modules)) await install(lab, manager, tarball)
    await bundle(lab, join(modules, 'esbuild/bin/esbuild'), tarball)
  }
}

async function install(lab: Lab, { name, add, execute, node }: Manager, tarball: string): Promise<void> {
  const cwd = await tempFolder(lab, files)
  const { printsOf } = within(lab, cwd)
  if (printsOf([...add, `platform-auth-server@file:${tarball}`]) === undefined) return
  lab.check(`${name}: the program prints its version`, printsOf([...execute, '--version']), `${version()}\n`)
  lab.check(`${name}: every export can be imported`, printsOf([...node, 'program.mjs']), printed)
  const { url } = await startProgram(lab, { command: execute, args: ['--demo', '--port', '0'], cwd, group: true })
  lab.check(`${name}: the demo serves its start page`, (await fetch(url)).status, 200)
}

/** A program that leaves the package out, as README.md says, works when esbuild has combined its own files. */
async function bundle(lab: Lab, esbuild: string, tarball: string): Promise<void> {
  const cwd = await tempFolder(lab, { ...files, 'main.mjs': "await import('./program.mjs')\n" })
  const { printsOf } = within(lab, cwd)
  printsOf(['npm', 'install', tarball])
  const flags = ['--bundle', '--platform=node', '--format=esm', '--packages=external', '--outfile=out/main.mjs']
  printsOf([esbuild, 'main.mjs', ...flags])
  lab.check('esbuild: a program that imports the package can be bundled', printsOf([node, 'out/main.mjs']), printed)
}

function within(lab: Lab, cwd: string) {
  return {
    /** Returns what a command prints, or undefined if it fails. Then the lab fails, and shows the output. */
    printsOf([command = '', ...args]: Command): string | undefined {
      const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
      if (status === 0) return stdout
      lab.check(`${[command, ...args].join(' ')} ends with 0`, `${status} ${stdout}${stderr}`.slice(-400), '')
      return undefined
    }
  }
}
