// Follows the recipes of docs/pages/bundlers.md: the configurations, flags and versions come from the document.
import type { Page } from 'playwright-core'
import { fencedBlocks, fencedLines } from '../../helpers/markdown.js'
import { freePort, isAnswering } from '../../helpers/ports.js'
import { startProgram } from '../../helpers/program.js'
import { readText } from '../../helpers/repository.js'
import type { Teardown } from '../../helpers/scope.js'
import { run, startService } from '../programs.js'

const page = readText('docs/pages/bundlers.md')

/** The ports of the development server and of this server. */
export interface Ports {
  readonly development: number
  readonly server: number
}

/** Returns the block of code that contains a text, with ports that are free on this machine. */
export function documented(text: string, ports?: Ports): string {
  const block = only(fencedBlocks(page).filter(block => block.text.includes(text))).text
  return ports ? withPorts(block, ports) : block
}

/** Returns a package with the version that the document names. */
export function documentedVersion(name: string): string {
  const [, version] = new RegExp(`For \`${name}\` (\\d[\\d.]*\\d)`).exec(page) ?? []
  if (version === undefined) throw new Error(`docs/pages/bundlers.md names no version of ${name}.`)
  return `${name}@${version}`
}

/** Starts a development server and, as documented, the demo behind it. Returns the URL that users open. */
export async function startDevelopment(
  t: Teardown,
  { folder, ports, script, args }: { folder: string; ports: Ports; script: string; args: readonly string[] },
  demoFlags: readonly string[] = []
): Promise<string> {
  const line = only(fencedLines(page, 'sh').filter(text => text.includes(' --demo ')))
  const flags = withPorts(line, ports).replace('npx platform-auth-server ', '').split(' ')
  await startProgram(t, { args: [...flags, ...demoFlags] })
  const site = `http://localhost:${ports.development}`
  const env = { CI: 'true', NEXT_TELEMETRY_DISABLED: '1', NG_CLI_ANALYTICS: 'false' }
  const command = { command: process.execPath, args: [script, ...args], cwd: folder, env }
  await startService(t, command, () => isAnswering(site))
  return site
}

/** Starts the demo in the folder of an application, with the documented settings for production. Returns its URL. */
export async function startProduction(t: Teardown, folder: string, settings: string): Promise<string> {
  const values = documented(settings)
    .trim()
    .split('\n')
    .flatMap(line => line.split(': '))
  const flags = values.map((value, index) =>
    index % 2 === 0 ? `--${value.replace(/[A-Z]/g, '-$&').toLowerCase()}` : value
  )
  const args = ['--demo', '--mode', 'dual', '--port', '0', ...flags]
  return (await startProgram(t, { args, cwd: folder })).url
}

export async function freePorts(): Promise<Ports> {
  return { development: await freePort(), server: await freePort() }
}

/** Runs a program of the installed packages to its end. */
export function runInstalled(folder: string, script: string, ...args: readonly string[]): Promise<void> {
  const env = { CI: 'true', NEXT_TELEMETRY_DISABLED: '1', NG_CLI_ANALYTICS: 'false' }
  return run({ command: process.execPath, args: [script, ...args], cwd: folder, env })
}

/** Chooses a user on the page of the demo identity provider. */
export async function chooseUser(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Ada Lovelace' }).click()
}

export async function shows(page: Page, text: string): Promise<void> {
  await page.locator('#greeting').filter({ hasText: text }).waitFor()
}

/** The status of a request that a script of the page sends. */
export function statusOf(page: Page, path: string): Promise<number> {
  return page.evaluate(`fetch('${path}').then(response => response.status)`)
}

/** Replaces the ports of the document. Port 5173 stands for the development server of every bundler. */
function withPorts(text: string, ports: Ports): string {
  return text.replaceAll('5173', String(ports.development)).replaceAll('8080', String(ports.server))
}

function only<T>(found: readonly T[]): T {
  if (found.length !== 1 || found[0] === undefined)
    throw new Error(`docs/pages/bundlers.md has ${found.length} matches, not one.`)
  return found[0]
}
