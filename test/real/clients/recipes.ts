// Follows the recipes of docs/pages/bundlers.md: the configurations, flags and versions come from the document.
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { fencedBlocks, fencedLines } from '../../helpers/markdown.js'
import { freePort, isAnswering } from '../../helpers/ports.js'
import { startProgram } from '../../helpers/program.js'
import { filesBelow, readText } from '../../helpers/repository.js'
import { run, startService } from '../programs.js'
import type { Lab } from './lab.js'

const page = readText('docs/pages/bundlers.md')

/** The ports of the development server and of this server. */
interface Ports {
  readonly development: number
  readonly server: number
}

/** The files of one of the applications in applications/, by their paths in it. */
export function filesOf(application: string): Record<string, string> {
  const folder = `test/real/clients/applications/${application}`
  return Object.fromEntries(filesBelow(folder).map(path => [path.slice(folder.length + 1), readText(path)]))
}

/** Returns the block of code that contains a text. */
export function documented(text: string): string {
  return only(fencedBlocks(page).filter(block => block.text.includes(text))).text
}

/** Returns a package with the version that the document names. */
export function documentedVersion(name: string): string {
  const [, version] = new RegExp(`\`${name}\` (\\d[\\d.]*\\d)`).exec(page) ?? []
  if (version === undefined) throw new Error(`docs/pages/bundlers.md names no version of ${name}.`)
  return `${name}@${version}`
}

/**
 * Creates the application of a recipe, and returns the documented steps.
 * @param script the script of the installed bundler
 * @param files the files of the application, with a documented configuration
 */
export async function followRecipe(lab: Lab, script: string, files: Readonly<Record<string, string>>) {
  const ports = { development: await freePort(), server: await freePort() }
  const entries = Object.entries(files).map(([path, content]) => [path, withPorts(content, ports)])
  const folder = await lab.application(Object.fromEntries(entries))
  const bundler = (...args: readonly string[]) => ({
    command: process.execPath,
    args: [join(lab.folder, script), ...args],
    cwd: folder,
    env: { CI: 'true', NEXT_TELEMETRY_DISABLED: '1', NG_CLI_ANALYTICS: 'false' }
  })
  return {
    folder,
    port: String(ports.development),
    /** Starts the development server and, as documented, the demo behind it. Returns the URL that users open. */
    async develop(args: readonly string[]): Promise<string> {
      const line = only(fencedLines(page, 'sh').filter(text => text.includes(' --demo ')))
      const flags = withPorts(line, ports).replace('npx platform-auth-server ', '').split(' ')
      await startProgram(lab, { args: flags })
      const site = `http://localhost:${ports.development}`
      await startService(lab, bundler(...args), () => isAnswering(site))
      return site
    },
    build: () => run(bundler('build')),
    /** Starts the demo in the folder of the application, with the documented settings for production. Returns its URL. */
    async serve(settings: string): Promise<string> {
      const values = documented(settings)
        .trim()
        .split('\n')
        .flatMap(line => line.split(': '))
      const flags = values.map((value, index) =>
        index % 2 === 0 ? `--${value.replace(/[A-Z]/g, '-$&').toLowerCase()}` : value
      )
      const args = ['--demo', '--mode', 'dual', '--port', '0', ...flags]
      return (await startProgram(lab, { args, cwd: folder })).url
    }
  }
}

/** Opens a page without a session, signs in, and checks that the page then has the same URL. */
export async function signInAt({ check }: Lab, page: Page, url: string, what: string, text = 'Hello'): Promise<void> {
  await page.goto(url)
  await chooseUser(page)
  await shows(page, `${text}, Ada Lovelace`)
  check(what, page.url(), url)
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
