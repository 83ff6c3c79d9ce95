// A whole server, an identity provider, a browser and a clock of its own for one test.
import type { ExecutionContext } from 'ava'
import type { Config } from '#src/config/settings.js'
import { type RunningServer, type ServeOptions, serve } from '#src/server.js'
import { type Browser, type BrowserResponse, createBrowser } from './browser.js'
import { type ByteRecorder, recordBytes } from './byte-recorder.js'
import { type Clock, createClock } from './clock.js'
import { type DeepPartial, defaultCallbackUrl, testConfig } from './config.js'
import { createHostileIdp, type HostileIdp } from './hostile-idp/index.js'
import { type CollectedLogs, collectLogs } from './logs.js'
import { tempFolder } from './temp-folder.js'

export interface TestServerOptions {
  readonly mode?: Config['mode']
  readonly overrides?: DeepPartial<Config>
  /** Given to several servers, it makes them replicas of one deployment. */
  readonly idp?: HostileIdp
  readonly clock?: Clock
  readonly logLevel?: Config['log']['level']
  readonly parts?: ServeOptions
  /** Shorter patience with slow clients than a real server has. */
  readonly limits?: Parameters<typeof serve>[2]
}

export interface TestServer {
  readonly server: RunningServer
  readonly idp: HostileIdp
  readonly clock: Clock
  readonly config: Config
  readonly logs: CollectedLogs
  /** Every byte that the server sent, to `browser` and the browsers of `newBrowser`. */
  readonly recorder: ByteRecorder
  /** Where browsers think they are: the origin of the callback address. */
  readonly origin: string
  readonly browser: Browser
  newBrowser(): Browser
  /** Lets a browser find this server at its origin; with several replicas, the one that answers from now on. */
  connect(browser: Browser): void
}

export async function startTestServer(
  t: Pick<ExecutionContext, 'teardown'>,
  options: TestServerOptions = {}
): Promise<TestServer> {
  const { mode = 'single', overrides = {}, logLevel = 'trace', clock = createClock() } = options
  const callbackUrl = overrides.platform?.callbackUrl ?? defaultCallbackUrl
  const idp = options.idp ?? (await createHostileIdp(t, { now: clock.now, callbackUrl }))
  const wwwroot = await tempFolder(t, { 'index.html': '<!doctype html><title>The application</title>' })
  const config = testConfig(idp, { mode, wwwroot, ...overrides, log: { level: logLevel, ...overrides.log } })
  const logs = await collectLogs(config.log.level)
  const server = await serve(config, { now: clock.now, log: logs.log, ...options.parts }, options.limits)
  t.teardown(() => server.close())
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
    recorder,
    origin,
    browser: newBrowser(),
    newBrowser,
    connect: browser => browser.connectTo(origin, recorder.url)
  }
}

/**
 * Signs in as a person does: opens the login, is sent to the identity provider and back. Gives the callback's answer; the page it
 * redirects to is not opened.
 */
export async function signIn(
  browser: Browser,
  { returnTo }: { readonly returnTo?: string } = {}
): Promise<BrowserResponse> {
  const callback = await openCallback(browser, await startLogin(browser, returnTo))
  if (callback.statusCode !== 302) throw new Error(`The callback answered ${callback.statusCode}: ${callback.text()}`)
  return callback
}

/** Opens the login and the identity provider; gives the callback address to which the provider sends the browser. */
export async function startLogin(browser: Browser, returnTo?: string): Promise<string> {
  const query = returnTo === undefined ? '' : `?${new URLSearchParams({ return_to: returnTo })}`
  const login = await browser.navigate(`/api/auth/login${query}`)
  const atProvider = login.headers.location
  if (login.statusCode !== 302 || !atProvider) throw new Error(`Login answered ${login.statusCode}: ${login.text()}`)
  const authorized = await browser.navigate(atProvider, { from: browser.origin ?? '' })
  const back = authorized.headers.location
  if (!back) throw new Error(`The identity provider answered ${authorized.statusCode}: ${authorized.text()}`)
  return back
}

/** The way back: a navigation that the identity provider's site caused. */
export function openCallback(browser: Browser, callbackUrl: string): Promise<BrowserResponse> {
  return browser.navigate(callbackUrl, { from: 'http://127.0.0.1' })
}
