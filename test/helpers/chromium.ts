// A real browser for tests. A process of tests starts one Chromium, and each visitor has a browser context with its own
// cookies, cache and storage.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import test, { type ExecutionContext } from 'ava'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { findChromium, launchChromium } from './launch-chromium.js'
import { testWhere } from './requirement.js'

interface VisitOptions extends BrowserContextOptions {
  /** Console errors that the test expects. */
  readonly expectedErrors?: RegExp
}

export type Visit = ReturnType<typeof visitsOf>['visit']
export type Visitor = Awaited<ReturnType<Visit>>

const executablePath = findChromium()
let browser: Promise<Browser> | undefined

test.after.always(async () => (await browser)?.close())

/**
 * Defines a test whose body can open browsers. The test also fails if a page reports an error or requests an external host.
 * Without Chromium the test is skipped, but in CI it fails.
 */
export const browserTest = defineWith(test)

/** Defines a browser test that uses the clipboard, which all visitors share. */
export const serialBrowserTest = defineWith(test.serial)

function defineWith(defining: Parameters<typeof testWhere>[2]) {
  const define = testWhere(executablePath !== undefined, 'no Chromium found, set CHROMIUM to its path', defining)
  return (title: string, body: (t: ExecutionContext, visit: Visit) => Promise<void>): void =>
    define(title, async t => {
      browser ??= launchChromium(executablePath ?? '')
      const { visit, complaints } = visitsOf(await browser, t)
      await body(t, visit).catch((error: unknown) => {
        // An error of the page is often the cause of what the test waits for in vain.
        t.log(...complaints)
        throw error
      })
      t.deepEqual(complaints, [])
    })
}

function visitsOf(browser: Browser, t: ExecutionContext) {
  const complaints: string[] = []
  async function visit({ expectedErrors, ...options }: VisitOptions = {}) {
    const context = await browser.newContext({ viewport: { width: 900, height: 700 }, ...options })
    t.teardown(() => context.close())
    context.setDefaultTimeout(60_000)
    context.on('weberror', webError => complaints.push(`uncaught: ${webError.error().message}`))
    context.on('console', message => {
      // Chromium logs every failed request and every status of 400 and above as an error. Tests check these statuses
      // themselves.
      const isExpected = message.text().startsWith('Failed to load resource') || expectedErrors?.test(message.text())
      if (message.type() === 'error' && !isExpected) {
        complaints.push(`console: ${message.text()}`)
      }
    })
    context.on('request', request => {
      const { protocol, hostname } = new URL(request.url())
      const isLocal =
        /^(localhost|127\.0\.0\.1|.*\.test)$/.test(hostname) || protocol === 'data:' || protocol === 'blob:'
      if (!isLocal) complaints.push(`outside request: ${request.url()}`)
    })
    const newTab = () => context.newPage()
    return { page: await newTab(), context, newTab }
  }
  return { visit, complaints }
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

// What axe-core would collect besides violations takes more time than finding them. Dark mode changes only colors.
const axeOptions = {
  light: `{ resultTypes: ['violations'], preload: false }`,
  dark: `{ resultTypes: ['violations'], preload: false, runOnly: { type: 'tag', values: ['cat.color'] } }`
} as const

// A page that reloads itself loses injected scripts. It reloads seconds after it was loaded, so the second try succeeds.
const AXE_TRIES = 3

/**
 * Returns the accessibility violations that axe-core finds on the page in its present state, in light and dark mode.
 */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  const problems: string[] = []
  for (const [colorScheme, options] of Object.entries(axeOptions) as [keyof typeof axeOptions, string][]) {
    await page.emulateMedia({ colorScheme })
    const { violations } = await runAxe(page, options)
    problems.push(...violations.flatMap(({ id, nodes }) => nodes.map(node => `${colorScheme}: ${id}: ${node.html}`)))
  }
  await page.emulateMedia({ colorScheme: null })
  return problems
}

/** Runs axe-core, and injects it if the page does not have it yet. The page may reload itself between the two steps. */
async function runAxe(page: Page, options: string): Promise<AxeResult> {
  for (let left = AXE_TRIES - 1; ; left--) {
    try {
      const isInjected = await page.evaluate('"axe" in globalThis')
      return (await page.evaluate(`${isInjected ? '' : axe}; axe.run(${options})`)) as AxeResult
    } catch (error) {
      if (left === 0 || !/context was destroyed|navigation|axe is not defined/.test(String(error))) throw error
      await page.waitForLoadState()
    }
  }
}
