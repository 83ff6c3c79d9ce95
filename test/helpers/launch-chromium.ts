// The Chromium process, for tests and for rehearsals that run without AVA.
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

// This Chromium has no window. The browser tests need about half as much processor time with it.
const usualPaths = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
]

/** Returns the path of Chromium, or undefined if it is not installed. The variable CHROMIUM can name another path. */
export function findChromium(): string | undefined {
  const { CHROMIUM } = process.env
  return (CHROMIUM ? [CHROMIUM] : usualPaths).find(path => existsSync(path))
}

/** Starts Chromium without a window. */
export function launchChromium(executablePath: string): Promise<Browser> {
  return chromium.launch({
    executablePath,
    // Signal handlers cannot be installed in a worker thread, and AVA runs tests in worker threads.
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
    args: [
      // Chromium has no sandbox for root, and containers run as root.
      '--no-sandbox',
      '--headless',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // Each navigation within a site would get a new frame in the renderer, which costs a third of the processor time of these tests.
      // Playwright enables the first feature itself, but only the last of several such flags counts.
      '--enable-features=CDPScreenshotNewSurface,RenderDocument:level/crashed-frame',
      // Tests use names other than localhost, because browsers relax their rules for plain http on localhost.
      '--host-resolver-rules=MAP *.test 127.0.0.1',
      // A prefetch does not heed the option `ignoreHTTPSErrors` of a browser context.
      '--ignore-certificate-errors'
    ]
  })
}
