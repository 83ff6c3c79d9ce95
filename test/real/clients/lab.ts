// What a program tells the lab, what the lab gives to a program, and how it runs one.
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Browser, Page } from 'playwright-core'
import { findChromium, launchChromium } from '../../helpers/launch-chromium.js'
import { installPackage } from '../../helpers/packed.js'
import { repository } from '../../helpers/repository.js'
import type { Teardown } from '../../helpers/scope.js'
import { writeFiles } from '../../helpers/temp-folder.js'
import { run } from '../programs.js'
import type { Play, Report } from '../suite.js'

/** A program that is run through the real server. To add one, write a file with one and list it in main.ts. */
export interface Program {
  /** The name for `--only`. */
  readonly name: string
  /** npm packages with exact versions, such as `vite@8.3.8`. They are installed into a cache folder, never into the project. */
  readonly packages: readonly string[]
  /** Runs the program and checks what it does. What it starts is ended by `lab.teardown`. */
  run(lab: Lab): Promise<void>
}

export interface Lab extends Teardown, Pick<Report, 'note'> {
  /** Compares two values. A difference fails the lab, and the program runs on. */
  check(what: string, actual: unknown, expected: unknown): void
  /** The folder with the installed packages in `node_modules`. */
  readonly folder: string
  /** Loads an installed package into this process. */
  load<Module>(name: string): Module
  /** Creates a folder with these files, next to the installed packages and to this package as npm installs it. */
  application(files: Readonly<Record<string, string>>): Promise<string>
  /** Opens a page in a Chromium with empty storage. Paths are opened at `site`. */
  newPage(site?: string): Promise<Page>
}

const LIMIT_MS = 300_000
const cacheFolder = process.env.PLATFORM_AUTH_CLIENTS_CACHE ?? join(repository, '.cache', 'clients')

/** Installs the packages of a program, and runs it. */
export function playOf(program: Program): Play {
  return async (report, scope) => {
    report.title([program.name, ...program.packages].join(' '))
    const began = Date.now()
    const folder = await install(program)
    const installed = Date.now()
    await beforeLimit(program.run(createLab(scope, folder, report)))
    report.figures({ 'ms to install': installed - began, 'to run': Date.now() - installed })
  }
}

/** Installs the packages of a program, unless they are there. Returns the folder that contains `node_modules`. */
async function install({ name, packages }: Program): Promise<string> {
  const folder = join(cacheFolder, name)
  const list = join(folder, 'installed.txt')
  const wanted = packages.join('\n')
  if (existsSync(list) && (await readFile(list, 'utf8')) === wanted) return folder
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  const flags = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline']
  // The lock file makes this folder the root of the applications in it, so Next.js finds its packages here.
  if (packages.length > 0) await run({ command: 'npm', args: ['install', ...flags, ...packages], cwd: folder })
  await writeFile(list, wanted)
  return folder
}

/** Rejects if the program hangs. The teardown then ends what it has started. */
async function beforeLimit(running: Promise<void>): Promise<void> {
  const timer = new AbortController()
  const limit = pause(LIMIT_MS, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`the program has not ended after ${LIMIT_MS / 1000} seconds`)
  })
  await Promise.race([running, limit]).finally(() => timer.abort())
}

function createLab(t: Teardown, folder: string, { check, note }: Report): Lab {
  let browser: Promise<Browser> | undefined
  let isPackageInstalled = false
  return {
    teardown: end => t.teardown(end),
    folder,
    load: createRequire(join(folder, 'package.json')),
    note,
    check: (what, actual, expected) =>
      check(what, isDeepStrictEqual(actual, expected), `${shown(actual)} instead of ${shown(expected)}`),
    async application(files) {
      if (!isPackageInstalled) await installPackage(join(folder, 'node_modules'))
      isPackageInstalled = true
      const application = await mkdtemp(join(folder, 'application-'))
      t.teardown(() => rm(application, { recursive: true, force: true, maxRetries: 5 }))
      await writeFiles(application, files)
      return application
    },
    async newPage(baseURL) {
      browser ??= openBrowser(t)
      const context = await (await browser).newContext({ ...(baseURL && { baseURL }) })
      context.setDefaultTimeout(60_000)
      return context.newPage()
    }
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  return text.length > 500 ? `${text.slice(0, 500)}…` : text
}

async function openBrowser(t: Teardown): Promise<Browser> {
  const path = findChromium()
  if (path === undefined) throw new Error('Chromium was not found. Set CHROMIUM to its path.')
  const browser = await launchChromium(path)
  t.teardown(() => browser.close())
  return browser
}
