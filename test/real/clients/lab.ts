// Runs the programs one after another, and prints their failed checks and a table.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Browser } from 'playwright-core'
import { findChromium, launchChromium } from '../../helpers/launch-chromium.js'
import { installPackage } from '../../helpers/packed.js'
import { inScope, type Teardown } from '../../helpers/scope.js'
import { print } from '../report.js'
import { install } from './packages.js'
import type { Lab, Program } from './program.js'

const LIMIT_MS = 300_000

interface Result {
  readonly program: Program
  readonly counts: Counts
  readonly installSeconds: number
  readonly seconds: number
}

interface Counts {
  passed: number
  failed: number
}

/** Resolves with true if all checks of all programs have passed. */
export async function runPrograms(programs: readonly Program[], isVerbose: boolean): Promise<boolean> {
  // Exits on these signals, because exit handlers then kill the servers.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const results: Result[] = []
  for (const program of programs) results.push(await runProgram(program, isVerbose))
  print('\n| program | packages | checks passed | checks failed | to install | to run |\n|---|---|---|---|---|---|')
  for (const { program, counts, installSeconds, seconds } of results) {
    const cells = [program.name, program.packages.join(' '), counts.passed, counts.failed, `${installSeconds} s`]
    print(`| ${[...cells, `${seconds} s`].join(' | ')} |`)
  }
  const sum = (key: keyof Counts) => results.reduce((total, { counts }) => total + counts[key], 0)
  print(`\n  ${sum('passed')} checks passed`)
  if (sum('failed') > 0) print(`  ${sum('failed')} checks failed`)
  return sum('failed') === 0
}

async function runProgram(program: Program, isVerbose: boolean): Promise<Result> {
  print(`\n== ${program.name}`)
  const counts: Counts = { passed: 0, failed: 0 }
  const report = (isPassed: boolean, text: string) => {
    counts[isPassed ? 'passed' : 'failed']++
    if (!isPassed || isVerbose) print(`   ${isPassed ? '✔' : '✘'} ${text}`)
  }
  const begin = Date.now()
  let installed = begin
  const secondsBetween = (from: number, to: number) => Math.round((to - from) / 100) / 10
  try {
    const folder = await install(program)
    installed = Date.now()
    await inScope(t => beforeLimit(program.run(createLab(t, folder, report))))
  } catch (error) {
    report(false, `the program ran to its end: ${(error as Error).stack}`)
  }
  return {
    program,
    counts,
    installSeconds: secondsBetween(begin, installed),
    seconds: secondsBetween(installed, Date.now())
  }
}

/** Rejects if the program hangs. The teardown then ends what it has started. */
async function beforeLimit(running: Promise<void>): Promise<void> {
  const timer = new AbortController()
  const limit = pause(LIMIT_MS, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`the program has not ended after ${LIMIT_MS / 1000} seconds`)
  })
  await Promise.race([running, limit]).finally(() => timer.abort())
}

function createLab(t: Teardown, folder: string, report: (isPassed: boolean, text: string) => void): Lab {
  let browser: Promise<Browser> | undefined
  let isPackageInstalled = false
  return {
    teardown: end => t.teardown(end),
    folder,
    load: createRequire(join(folder, 'package.json')),
    note: line => print(`   ${line}`),
    check(what, actual, expected) {
      const isExpected = isDeepStrictEqual(actual, expected)
      report(isExpected, isExpected ? what : `${what}: ${shown(actual)} instead of ${shown(expected)}`)
    },
    async application(files) {
      if (!isPackageInstalled) await installPackage(join(folder, 'node_modules'))
      isPackageInstalled = true
      const application = await mkdtemp(join(folder, 'application-'))
      t.teardown(() => rm(application, { recursive: true, force: true, maxRetries: 5 }))
      for (const [path, content] of Object.entries(files)) {
        await mkdir(dirname(join(application, path)), { recursive: true })
        await writeFile(join(application, path), content)
      }
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
