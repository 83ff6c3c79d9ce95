// Functions that the tests in this folder share. They read the session cookies of a browser and decrypt them with the secret
// of the server.
import http from 'node:http'
import type { ExecutionContext } from 'ava'
import type { Context, Middleware } from 'koa'
import type { Config } from '#src/config/settings.js'
import { createKeyring } from '#src/cookie/keyring.js'
import { joinChunks, splitIntoChunks } from '#src/cookie/request-cookies.js'
import { decodeSession } from '#src/cookie/session-content.js'
import { hasTokens } from '#src/cookie/session-record.js'
import { createApp } from '#src/server/start-server.js'
import { requireTokens } from '#src/web/routes/custom-routes.js'
import type { Extension } from '#src/web/routes/extension.js'
import { type Browser, type BrowserResponse, createBrowser } from '../helpers/browser.js'
import { createClock } from '../helpers/clock.js'
import { discovered, publicOrigin, testConfig } from '../helpers/config.js'
import { createHostileIdp } from '../helpers/hostile-idp/index.js'
import { type CollectedLogs, collectLogs, isWarning } from '../helpers/logs.js'
import type { ModeName } from '../helpers/modes.js'
import { listen } from '../helpers/ports.js'
import { signIn, startTestServer, type TestServer, type TestServerOptions } from '../helpers/server.js'

/** A route that exists in both modes and refreshes expired sessions. */
export const guarded = '/api/auth/profile'

/** Starts a server and signs its browser in. */
export async function startSignedIn(
  t: Pick<ExecutionContext, 'teardown'>,
  options: TestServerOptions = {}
): Promise<TestServer> {
  const started = await startTestServer(t, options)
  await signIn(started.browser)
  return started
}

/** Starts a server that reads the endpoints of the provider from its discovery document. */
export async function startDiscovered(
  t: Pick<ExecutionContext, 'teardown'>,
  { settings, ...options }: TestServerOptions = {}
): Promise<TestServer> {
  const clock = createClock()
  const idp = await createHostileIdp(t, { now: clock.now })
  const platform = { ...discovered(idp), ...settings?.platform }
  return startTestServer(t, { ...options, idp, clock, settings: { ...settings, platform } })
}

/** Opens a URL of the login route, and then the identity provider. Returns the callback URL. */
export async function authorize(
  browser: Browser,
  login: string,
  options?: Parameters<Browser['navigate']>[1]
): Promise<string> {
  const { location: atProvider = '' } = (await browser.navigate(login, options)).headers
  const { location: back = '' } = (await browser.navigate(atProvider, { from: browser.origin ?? '' })).headers
  return back
}

/** Returns the callback URL that Keycloak opens in a tab whose login page has expired, because another tab has signed in. */
export function expired(callbackUrl: string): string {
  const error = { error: 'temporarily_unavailable', error_description: 'authentication_expired' }
  return withParameters(callbackUrl, { code: undefined, ...error })
}

/** Follows the redirects of a callback that has started the login again, and returns the new callback URL. */
export async function followToCallback(browser: Browser, { statusCode, headers }: BrowserResponse): Promise<string> {
  const { location = '' } = headers
  if (statusCode !== 302 || !location.includes('/api/auth/login?')) {
    throw new Error(`The callback responded with ${statusCode} and ${location}.`)
  }
  return authorize(browser, location, { from: 'http://127.0.0.1' })
}

/** Lets an hour pass, in which the access tokens expire, and then asks for a route, by default for the profile. */
export function afterAnHour({ browser, clock }: Pick<TestServer, 'browser' | 'clock'>, path = guarded) {
  clock.advanceSeconds(3600)
  return browser.fetch(path)
}

/** The statuses of the responses, in their order. */

export function statusesOf(responses: readonly { readonly statusCode: number }[]): number[] {
  return responses.map(({ statusCode }) => statusCode)
}

/** The first log line with a warning or an error, if there is one. */
export function warningIn({ find }: Pick<CollectedLogs, 'find'>): ReturnType<CollectedLogs['find']> {
  return find(isWarning)
}

export const loginCookieName = 'platform_session_login'

/** The session cookies in the jar, in the order of their chunks. */
export function sessionCookies(browser: Browser): readonly (readonly [name: string, value: string])[] {
  return browser.cookies
    .all()
    .filter(({ name }) => isSessionCookie(name))
    .map(({ name, value }) => [name, value] as const)
    .sort(([a], [b]) => a.localeCompare(b))
}

/** The Cookie header with the session cookies of the browser, for a request that does not use the jar. */
export function sessionHeader(browser: Browser): string {
  return headerOf(sessionCookies(browser))
}

export function headerOf(cookies: readonly (readonly [name: string, value: string])[]): string {
  return cookies.map(([name, value]) => `${name}=${value}`).join('; ')
}

/** The session cookies that a response sets. */
export function sessionCookiesSet(response: BrowserResponse): BrowserResponse['setCookies'] {
  return response.setCookies.filter(({ name }) => isSessionCookie(name))
}

function isSessionCookie(name: string): boolean {
  return /^(__Host-)?platform_session(\.\d+)?$/.test(name)
}

export interface SealedSession {
  readonly token?: string
  readonly public_token?: string
  readonly internal_token?: string
  readonly refresh_token?: string
  readonly expires_at?: number
  readonly _id: string
  readonly _login: number
  readonly _issued: number
  readonly _changed?: number
  readonly _expire: number
  readonly _rev: number
}

type Deployment = Pick<TestServer, 'config'>

/** The session of the browser, decrypted with the secret of the server. */
export function openedSession(browser: Browser, { config }: Deployment): SealedSession {
  const cookies = sessionCookies(browser)
  const sealed = joinChunks(
    headerOf(cookies),
    cookies.map(([name]) => name)
  )
  const plaintext = sealed && sealerOf(config).open(sealed, cookies[0]?.[0] ?? '')
  if (!plaintext) throw new Error('The browser holds no session that this deployment sealed.')
  const { session, expire } = decodeSession(plaintext) ?? {}
  if (!session || !hasTokens(session)) throw new Error('The session of the browser is only a reference.')
  const { id, rev, loggedInAt, issuedAt, changedAt, fields } = session
  const times = { _login: loggedInAt, _issued: issuedAt, _expire: expire as number }
  return { ...fields, _id: id, _rev: rev, ...times, ...(changedAt !== undefined && { _changed: changedAt }) }
}

/** The fields of the session that the service contract defines. */
export function openedFields(browser: Browser, deployment: Deployment): Partial<SealedSession> {
  const { _id, _rev, _login, _issued, _changed, _expire, ...fields } = openedSession(browser, deployment)
  return fields
}

/** A Cookie header with any session, sealed with the secret of the server. Only a program that knows the secret can make one. */
export function sealedHeader({ config }: Deployment, content: object | Buffer, name = 'platform_session'): string {
  const plaintext = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content))
  const chunks = splitIntoChunks(sealerOf(config).seal(plaintext, name))
  return headerOf(chunks.map((chunk, index) => [index === 0 ? name : `${name}.${index}`, chunk] as const))
}

function sealerOf({ mode, session }: Config) {
  return createKeyring([session.secret, ...session.previousSecrets]).sealer(`session cookie, ${mode} mode`)
}

/** Returns a query parameter of a URL. */
export function parameter(address: string | undefined, name: string): string {
  return new URL(address ?? '', 'http://none').searchParams.get(name) ?? ''
}

/** Returns the URL with changed query parameters. A parameter whose new value is undefined is removed. */
export function withParameters(address: string, changes: Readonly<Record<string, string | undefined>>): string {
  const url = new URL(address)
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) url.searchParams.delete(name)
    else url.searchParams.set(name, value)
  }
  return url.href
}

/** The callback URL of a deployment behind a proxy that terminates TLS and removes a path prefix. */
export const httpsCallbackUrl = 'https://app.example/tools/viewer/api/auth/callback'

/** Options for an application to which a test adds one handler. */
export function handledBy(handler: Middleware): { readonly extension: Extension } {
  return { extension: app => void app.use(handler) }
}

/** The path of the route that `startWithRoute` adds. */
export const customRoute = '/own'

/** Starts the application with one more route, by default behind requireTokens, as an application that imports it would add one. */
export async function startWithRoute(
  t: Pick<ExecutionContext, 'teardown'>,
  mode: ModeName,
  handle: (ctx: Context) => void,
  guard: Middleware = requireTokens
) {
  const clock = createClock()
  const idp = await createHostileIdp(t, { now: clock.now })
  const logs = await collectLogs()
  const config = testConfig(idp, { mode })
  const app = createApp(config, { now: clock.now, log: logs.log })
  app.use((ctx, next) => (ctx.path === customRoute ? guard(ctx, async () => handle(ctx)) : next()))
  const port = await listen(t, http.createServer(app.callback()))
  const connectTo = { [publicOrigin]: `http://127.0.0.1:${port}` }
  return { browser: createBrowser(t, { origin: publicOrigin, connectTo, now: clock.now }), clock, config, idp, logs }
}

/** Returns when, and with which URL, a page loads itself again in a browser without scripts. */
export function refreshOf(page: BrowserResponse): string | undefined {
  return /<noscript><meta http-equiv="refresh" content="([^"]*)">/.exec(page.text())?.[1]?.replaceAll('&#38;', '&')
}
