// Vite from the package registry, and an application with the recipe of docs/bundlers.md.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fencedBlocks, fencedLines } from '../../helpers/markdown.js'
import { isAnswering } from '../../helpers/ports.js'
import { readText, repository } from '../../helpers/repository.js'
import type { Teardown } from '../../helpers/scope.js'
import { tempFolder } from '../../helpers/temp-folder.js'
import { startService } from '../programs.js'

export interface Ports {
  readonly vite: number
  readonly server: number
}

const cacheFolder = process.env.PLATFORM_AUTH_BUNDLERS_CACHE ?? join(repository, '.cache', 'bundlers')
const page = readText('docs/bundlers.md')

/** The version that docs/bundlers.md names as tested. */
export const version = /tested with Vite ([\d.]+)/.exec(page)?.[1] ?? ''

/** Installs Vite once. Returns the folder of the installed packages. */
export async function installVite(): Promise<string> {
  const folder = join(cacheFolder, `vite-${version}`)
  const modules = join(folder, 'node_modules')
  if (existsSync(join(modules, 'vite', 'package.json'))) return modules
  await mkdir(folder, { recursive: true })
  const args = ['install', '--prefix', folder, '--no-audit', '--no-fund', '--ignore-scripts', `vite@${version}`]
  const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(`vite@${version} cannot be installed: ${stderr}`)
  return modules
}

/** Replaces the ports of the recipe by ports that are free on this machine. */
function withPorts(text: string, ports: Ports): string {
  return text.replaceAll('5173', String(ports.vite)).replaceAll('8080', String(ports.server))
}

/** Returns the flags of the documented command that starts the demo behind Vite. */
export function demoFlags(ports: Ports): string[] {
  const [line, ...others] = fencedLines(page, 'sh').filter(text => text.includes(' --demo '))
  if (line === undefined || others.length > 0)
    throw new Error('docs/bundlers.md has not exactly one command with --demo')
  return withPorts(line, ports).replace('npx platform-auth-server ', '').split(' ')
}

const files = {
  'package.json': '{"type": "module"}',
  'index.html':
    '<!doctype html><title>An application</title><p id="greeting"></p><script type="module" src="/src/main.js"></script>',
  'src/greeting.js': "export const greeting = 'Hello'\n",
  'src/main.js': `import { apiFetch } from 'platform-auth-server/client'
import { greeting } from './greeting.js'

const response = await apiFetch('/api/auth/profile')
const { name } = await response.json()
const show = text => {
  document.querySelector('#greeting').textContent = \`\${text}, \${name}\`
}
show(greeting)
import.meta.hot?.accept('./greeting.js', changed => show(changed.greeting))
`
}

/** Creates the application with the documented vite.config.mjs. Returns its folder. */
export async function createApplication(t: Teardown, modules: string, ports: Ports): Promise<string> {
  const [config, ...others] = fencedBlocks(page).filter(({ text }) => text.includes("from 'vite'"))
  if (!config || others.length > 0) throw new Error('docs/bundlers.md has not exactly one configuration of Vite')
  const folder = await tempFolder(t, { ...files, 'vite.config.mjs': withPorts(config.text, ports) })
  // The package as npm installs it, so far as Vite uses it.
  for (const path of ['package.json', 'src/pages/client'])
    await cp(join(repository, path), join(modules, 'platform-auth-server', path), { recursive: true })
  await symlink(modules, join(folder, 'node_modules'))
  return folder
}

/** Starts the development server, and resolves when it responds. */
export async function startVite(t: Teardown, folder: string, ports: Ports): Promise<void> {
  const command = { command: process.execPath, args: ['node_modules/vite/bin/vite.js'], cwd: folder }
  await startService(t, command, () => isAnswering(`http://localhost:${ports.vite}/`))
}

/** Writes the pages for production into the folder `dist` of the application. */
export function build(folder: string): void {
  const args = ['node_modules/vite/bin/vite.js', 'build']
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(`vite build ended with ${status}: ${stderr}`)
}
