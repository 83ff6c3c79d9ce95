/**
 * `platform-auth-server/testing`: helpers for the tests of an application. They start the server with the demo identity
 * provider, and sign users in without a browser.
 */
import { loadConfig } from '../config/load.js'
import type { Settings } from '../config/settings.js'
import { type RunningServer, type StartOptions, startServer } from '../server/start-server.js'
import { createTestBrowser, type TestBrowser } from './browser.js'

export type { TestBrowser } from './browser.js'

export interface TestServerOptions extends StartOptions {
  /** Settings that take precedence over the settings file. Those for Redis have no effect. */
  readonly settings?: Settings
}

export interface TestServer extends RunningServer {
  /** Returns a browser in which nobody is signed in. Browsers share no cookies. */
  newBrowser(): TestBrowser
  /**
   * Returns a new browser in which a user is signed in. Any name is accepted.
   * @throws Error if the server does not complete the login. The message contains the response.
   */
  signIn(userName?: string): Promise<TestBrowser>
}

// Tests run in parallel, and on machines where another server may be running, so they must not use the ports of that server.
const TEST_SETTINGS = {
  port: 0,
  host: '127.0.0.1',
  metrics: { address: null },
  forwardAuth: { address: null },
  // A handler that waits for something else must not delay the end of a test.
  shutdown: { grace: 1 },
  log: { level: 'warn' }
} as const satisfies Settings

// A test server keeps everything in memory, even if the settings of the application name Redis. So tests need no Redis, and
// cannot change the data of a running server. The URL satisfies the rules of these settings, and is removed afterwards.
const REDIS_SETTINGS = {
  redis: { url: 'redis://127.0.0.1', caFile: null, certFile: null, keyFile: null, serverName: null }
} as const satisfies Settings

/**
 * Starts a server with a demo identity provider, both on free ports. It reads the settings file in the working
 * directory, as the command line does, but neither environment variables nor `.env`.
 * @example const server = await startTestServer({ settings: { mode: 'dual' }, extension: addRoutes })
 * const browser = await server.signIn('Ada Lovelace')
 * const response = await browser.fetch('/api/hubs')
 */
export async function startTestServer({ settings = {}, ...options }: TestServerOptions = {}): Promise<TestServer> {
  // Only flags override the proxy rules of a demo, so the rules are passed as flags.
  const rules = settings.apiProxy?.rules
  const flags = rules ? { 'apiProxy.rules': [rules].flat() } : {}
  const groups = Object.entries(TEST_SETTINGS).map(([name, ours]) => {
    const theirs = settings[name as keyof Settings]
    return [name, typeof ours === 'object' ? { ...ours, ...(theirs as object) } : (theirs ?? ours)]
  })
  const merged = { ...settings, ...Object.fromEntries(groups), ...REDIS_SETTINGS }
  const { config } = await loadConfig({ demo: true, env: false, flags, settings: merged })
  const demo = { apis: false, ...(typeof options.demo === 'object' && options.demo) }
  const server = await startServer({ ...config, redis: { ...config.redis, url: undefined } }, { ...options, demo })
  const newBrowser = () => createTestBrowser(server.url)
  return {
    ...server,
    newBrowser,
    async signIn(userName = 'Ada Lovelace') {
      const browser = newBrowser()
      const page = await browser.open('/api/auth/login')
      const headers = { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' }
      // The body is a string, because `URLSearchParams` of jsdom is not that of Node.
      const body = `user=${encodeURIComponent(userName)}`
      const end = await browser.open(page.url, { method: 'POST', body, headers })
      const { origin, pathname } = new URL(end.url)
      if (origin === server.url && !pathname.startsWith('/api/auth/')) return browser
      throw new Error(`signing in as ${userName} ended at ${end.url} with status ${end.status}: ${await end.text()}`)
    }
  }
}
