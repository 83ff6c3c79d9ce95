// Starts a whole server with its own identity provider, browser and clock for one test.
import type { ExecutionContext } from 'ava'
import type { Config } from '#src/config/settings.js'
import { type ServeOptions, serve } from '#src/server/serve.js'
import { type Browser, type BrowserResponse, createBrowser } from './browser.js'
import { recordBytes } from './byte-recorder.js'
import { type Clock, createClock } from './clock.js'
import { defaultCallbackUrl, type TestSettings, testConfig } from './config.js'
import { createHostileIdp, type HostileIdp } from './hostile-idp/index.js'
import { collectLogs } from './logs.js'
import { openRedisAt, PATIENT } from './redis-clock.js'
import { tempFolder } from './temp-folder.js'

export interface TestServerOptions {
  readonly mode?: Config['mode']
  readonly settings?: TestSettings
  /** Loaded settings, in place of `mode` and `settings`. */
  readonly config?: Config
  /** Servers that are given the same provider are replicas of one deployment. */
  readonly idp?: HostileIdp
  readonly clock?: Clock
  readonly logLevel?: Config['log']['level']
  readonly parts?: ServeOptions
  /** How the server connects to Redis. By default, Redis runs on the clock of the test. */
  readonly redis?: ServeOptions['redis']
  /** Shorter time limits for slow clients than those of a real server. */
  readonly limits?: Parameters<typeof serve>[2]
}

export type TestServer = Awaited<ReturnType<typeof startTestServer>>

export async function startTestServer(t: Pick<ExecutionContext, 'teardown'>, options: TestServerOptions = {}) {
  const { mode = 'single', settings = {}, logLevel = 'trace', clock = createClock() } = options
  const callbackUrl = options.config?.platform.callbackUrl ?? settings.platform?.callbackUrl ?? defaultCallbackUrl
  const idp = options.idp ?? (await createHostileIdp(t, { now: clock.now, callbackUrl }))
  const wwwroot = await tempFolder(t, { 'index.html': '<!doctype html><title>The application</title>' })
  const config =
    options.config ?? testConfig(idp, { mode, wwwroot, ...settings, log: { level: logLevel, ...settings.log } })
  const logs = await collectLogs(config.log.level)
  const redis = { open: openRedisAt(clock.now), timing: PATIENT, ...options.redis }
  const server = await serve(config, { now: clock.now, log: logs.log, redis, ...options.parts }, options.limits)
  t.teardown(() => server.close())
  // The last teardown runs first. Otherwise, a request to which the provider never responds would delay the end of the
  // server.
  t.teardown(() => idp.offline())
  const recorder = await recordBytes(t, server.port)

  const { origin, pathname } = new URL(config.platform.callbackUrl)
  const strippedPath = pathname.slice(0, -'/api/auth/callback'.length)
  const newBrowser = () =>
    createBrowser(t, { origin, strippedPath, connectTo: { [origin]: recorder.url }, now: clock.now })
  return {
    server,
    idp,
    clock,
    config,
    logs,
    /** Records every byte that the server sends to `browser` and to the browsers of `newBrowser`. */
    recorder,
    /** The origin of the callback URL, which browsers use as the server's origin. */
    origin,
    browser: newBrowser(),
    newBrowser,
    /**
     * Connects a browser to this server. With several replicas, this is the replica that serves the browser's next
     * requests.
     */
    connect: (browser: Browser) => browser.connectTo(origin, recorder.url)
  }
}

/**
 * Signs in as a user does: opens the login, is redirected to the identity provider and back. Returns the response of
 * the callback and does not open the page that it redirects to.
 */
export async function signIn(
  browser: Browser,
  { returnTo }: { readonly returnTo?: string } = {}
): Promise<BrowserResponse> {
  const callback = await openCallback(browser, await startLogin(browser, returnTo))
  if (callback.statusCode !== 302)
    throw new Error(`The callback responded with ${callback.statusCode}: ${callback.text()}`)
  return callback
}

/**
 * Opens the login and then the identity provider. Returns the callback address to which the provider redirects the
 * browser.
 */
export async function startLogin(browser: Browser, returnTo?: string): Promise<string> {
  const query = returnTo === undefined ? '' : `?${new URLSearchParams({ return_to: returnTo })}`
  const login = await browser.navigate(`/api/auth/login${query}`)
  const atProvider = login.headers.location
  if (login.statusCode !== 302 || !atProvider)
    throw new Error(`The login responded with ${login.statusCode}: ${login.text()}`)
  const authorized = await browser.navigate(atProvider, { from: browser.origin ?? '' })
  const back = authorized.headers.location
  if (!back) throw new Error(`The identity provider responded with ${authorized.statusCode}: ${authorized.text()}`)
  return back
}

/** Opens the callback as a navigation from the identity provider's site. */
export function openCallback(browser: Browser, callbackUrl: string): Promise<BrowserResponse> {
  return browser.navigate(callbackUrl, { from: 'http://127.0.0.1' })
}
