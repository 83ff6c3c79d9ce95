// The scenarios that are run with each provider, and their results. The server runs in this process with a clock that
// the scenarios move.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { runChecks } from '#src/cli/check/index.js'
import { loadConfig } from '#src/config/load.js'
import { serve } from '#src/server/serve.js'
import { createBrowser } from '../../helpers/browser.js'
import { createClock } from '../../helpers/clock.js'
import { collectLogs } from '../../helpers/logs.js'
import { inScope, type Teardown } from '../../helpers/scope.js'
import { signInOnPages, signOutOnPages } from './pages.js'
import { client, type RunningProvider } from './provider.js'

export type Mode = 'single' | 'dual'

export interface Outcome {
  /** `works`, or a few words that say what happened instead. */
  readonly result: string
  /** Lines of `check` or of the log that explain the result. */
  readonly details: readonly string[]
}

type Scenario = (provider: RunningProvider, mode: Mode) => Promise<Outcome>

// Longer than the lifetime of these providers' access tokens and shorter than the maximum age of a session.
const LIFETIME_SECONDS = 4000
const PARALLEL_REQUESTS = 100
// A session ends at the latest when the provider has refused its refresh token in an ambiguous way for ten minutes.
const REFUSAL_SECONDS = 5
const MAX_REFUSALS = 130

export const scenarios: Readonly<Record<string, Scenario>> = {
  check: (provider, mode) => check(provider, mode, {}),
  'check with logout.idp': (provider, mode) => check(provider, mode, { PLATFORM_AUTH_LOGOUT_IDP: 'true' }),
  'check with a wrong secret': (provider, mode) => check(provider, mode, { PLATFORM_CLIENT_SECRET: 'not-the-secret' }),
  'check with a wrong callback URL': (provider, mode) =>
    check(provider, mode, { PLATFORM_CALLBACK_URL: 'http://localhost:9999/api/auth/callback' }),
  'check with a wrong client': (provider, mode) => check(provider, mode, { PLATFORM_CLIENT_ID: 'nobody-knows-me' }),
  login: scenario(async ({ signIn, nameOf }) => {
    await signIn()
    const name = await nameOf()
    return name === 'Ada Lovelace' ? 'works' : `named ${name}`
  }),
  refresh: scenario(async ({ signIn, expire, nameOf, statusOf }) => {
    await signIn()
    // Refreshes twice, because a provider may return fewer scopes with each refresh.
    for (let time = 0; time < 2; time++) {
      expire()
      const status = await statusOf()
      if (status !== 200) return `${status} at refresh ${time + 1}`
    }
    await nameOf()
    return 'works'
  }),
  '100 parallel requests': scenario(async ({ signIn, expire, browser, logs, mode }) => {
    await signIn()
    expire()
    const before = logs.entries.length
    const requests = Array.from({ length: PARALLEL_REQUESTS }, () => browser.fetch('/api/auth/profile'))
    const statuses = new Set((await Promise.all(requests)).map(({ statusCode }) => statusCode))
    const calls = logs.entries
      .slice(before)
      .filter(({ event, outcome }) => event === 'refresh_succeeded' && outcome === 'succeeded')
      .reduce((sum, entry) => sum + Number(entry.provider_calls), 0)
    const right = mode === 'dual' ? 2 : 1
    return [...statuses].join() === '200' && calls === right ? 'works' : `${[...statuses]} with ${calls} calls`
  }),
  'logout: revoke': scenario(async ({ signIn, browser, logs, expire, statusOf, settled }) => {
    await signIn()
    const copy = browser.clone()
    const { headers } = await browser.navigate('/api/auth/logout')
    await settled(
      () =>
        logs.find(({ event }) => event === 'refresh_token_revoked' || /^revocation_/.test(String(event))) !== undefined
    )
    if (headers.location !== '/') return `led to ${headers.location}`
    expire()
    if ((await statusOf(copy)) !== 401) return 'the old cookie works'
    return logs.first('refresh_token_revoked') ? 'works' : 'not revoked'
  }),
  'logout: idp': scenario(
    async ({ signIn, browser }) => {
      await signIn()
      const { headers } = await browser.navigate('/api/auth/logout')
      const location = String(headers.location)
      if (location === '/') return 'here only'
      const end = await signOutOnPages(browser, location)
      return end === client.homeUrl ? 'works' : `ends at the provider: ${end}`
    },
    { PLATFORM_AUTH_LOGOUT_IDP: 'true' }
  ),
  'back-channel logout': scenario(
    async ({ signIn, browser, statusOf, settled, logs, provider, serverUrl }) => {
      if (!provider.registerBackchannelLogout) return 'not supported'
      await provider.registerBackchannelLogout(`${serverUrl}/api/auth/backchannel-logout`)
      await signIn()
      // The user signs in again, so there are two sessions here of one login at the provider.
      const first = browser.clone()
      for (const { name } of browser.cookies.all())
        if (name.startsWith('platform_session')) browser.cookies.delete(name)
      await signIn()
      if ((await statusOf(first)) !== 200) return 'no second session'
      const { headers } = await browser.navigate('/api/auth/logout')
      await signOutOnPages(browser, String(headers.location))
      const received = () => logs.find(({ event }) => /^backchannel_logout/.test(String(event)))
      await settled(() => received() !== undefined)
      const line = received()
      if (line?.event !== 'backchannel_logout_succeeded') return `rejected: ${line?.reason ?? 'no logout token'}`
      return (await statusOf(first)) === 401 ? 'works' : 'the session continues'
    },
    // When the refresh token is revoked, Keycloak forgets that this client takes part in the login, and sends it no logout token.
    { PLATFORM_AUTH_LOGOUT_IDP: 'true', PLATFORM_AUTH_LOGOUT_REVOKE: 'false', PLATFORM_BACKCHANNEL_LOGOUT: 'true' }
  ),
  'access by group': scenario(
    async ({ signIn, expire, statusOf, provider }) => {
      if (!provider.setAdmin) return 'not supported'
      await provider.setAdmin(true)
      await signIn()
      expire()
      const before = await statusOf()
      if (before !== 200) return `${before} at the refresh`
      await provider.setAdmin(false)
      expire()
      const after = await statusOf()
      return after === 403 ? 'works' : `${after} after the change`
    },
    { PLATFORM_AUTH_ACCESS_ALLOW: 'groups=admins' }
  ),
  'an ended login': scenario(async ({ signIn, expire, advance, statusOf, provider }) => {
    await signIn()
    await provider.endLogins()
    expire()
    let refusals = 0
    for (; refusals < MAX_REFUSALS && (await statusOf()) === 503; refusals++) advance(REFUSAL_SECONDS)
    if ((await statusOf()) !== 401) return 'stuck at 503'
    return refusals === 0 ? 'works' : `works after ${refusals * REFUSAL_SECONDS} s`
  }),
  'new signing keys': scenario(async ({ signIn, expire, statusOf, provider }) => {
    await signIn()
    await provider.rotateKeys()
    expire()
    const status = await statusOf()
    if (status !== 200) return `${status} at the refresh`
    return 'works'
  })
}

type Stage = Awaited<ReturnType<typeof setStage>>

/** Thrown if a step fails that every scenario needs. Its message is the result in the table. */
class Ended extends Error {}

function scenario(play: (stage: Stage) => Promise<string>, more: Readonly<Record<string, string>> = {}): Scenario {
  return async (provider, mode) => {
    const logs = await collectLogs('info')
    try {
      const result = await inScope(async t => play(await setStage(t, provider, mode, more, logs)))
      return { result, details: result.startsWith('works') ? [] : troubles(logs.entries) }
    } catch (error) {
      if (!(error instanceof Ended)) throw error
      return { result: error.message, details: troubles(logs.entries) }
    }
  }
}

async function setStage(
  t: Teardown,
  provider: RunningProvider,
  mode: Mode,
  more: Readonly<Record<string, string>>,
  logs: Awaited<ReturnType<typeof collectLogs>>
) {
  const clock = createClock()
  const { config } = await load(provider, mode, more)
  const server = await serve(config, { now: clock.now, log: logs.log })
  t.teardown(() => server.close())
  const { origin } = new URL(client.callbackUrl)
  const connectTo = { [origin]: `http://127.0.0.1:${server.port}` }
  const browser = createBrowser(t, { origin, now: clock.now, connectTo })
  const advance = (seconds: number) => clock.advanceSeconds(seconds)
  return {
    provider,
    mode,
    browser,
    /** The URL at which the provider reaches the server. */
    serverUrl: `http://127.0.0.1:${server.port}`,
    logs,
    async signIn() {
      const login = await browser.navigate('/api/auth/login')
      if (!login.headers.location) throw new Ended(`${login.statusCode} at the login`)
      const back = await signInOnPages(browser, login.headers.location)
      const { statusCode } = await browser.navigate(back, { from: new URL(login.headers.location).origin })
      if (statusCode !== 302) throw new Ended(`${statusCode} at the callback`)
    },
    /** Moves the clock so that the tokens of the session expire. */
    expire: () => advance(LIFETIME_SECONDS),
    advance,
    async statusOf(of = browser) {
      return (await of.fetch('/api/auth/profile')).statusCode
    },
    async nameOf() {
      const response = await browser.fetch('/api/auth/profile')
      if (response.statusCode !== 200) throw new Ended(`${response.statusCode} at the profile`)
      return response.json<{ name: string }>().name
    },
    async settled(condition: () => boolean) {
      const deadline = Date.now() + 20_000
      while (!condition() && Date.now() < deadline) await pause(50)
    }
  }
}

async function check(provider: RunningProvider, mode: Mode, more: Readonly<Record<string, string>>): Promise<Outcome> {
  const env = environment(provider, mode, more)
  const details: string[] = []
  const failed = new Set<string>()
  for await (const { check, status, message, next } of runChecks(await loadConfig({ env, cwd: '/' }), env)) {
    if (['port', 'wwwroot', 'redis', 'callback', 'settings'].includes(check)) continue
    if (status === 'failed') failed.add(check)
    details.push(`${status} ${check} ${message}${next === undefined ? '' : ` Next: ${next}`}`)
  }
  return { result: failed.size === 0 ? 'ok' : `failed: ${[...failed].join(', ')}`, details }
}

function load(provider: RunningProvider, mode: Mode, more: Readonly<Record<string, string>>) {
  return loadConfig({ env: environment(provider, mode, more), cwd: '/' })
}

function environment(provider: RunningProvider, mode: Mode, more: Readonly<Record<string, string>>) {
  return {
    SERVER_SESSION_SECRET: randomBytes(32).toString('base64url'),
    PORT: '0',
    PLATFORM_AUTH_HOST: '127.0.0.1',
    PLATFORM_AUTH_MODE: mode,
    PLATFORM_CLIENT_ID: client.id,
    PLATFORM_CLIENT_SECRET: client.secret,
    PLATFORM_CALLBACK_URL: client.callbackUrl,
    ...provider.settings[mode],
    ...more
  }
}

function troubles(entries: readonly Readonly<Record<string, unknown>>[]): string[] {
  const lines = entries
    .filter(({ err }) => err !== undefined)
    .map(({ event, err }) => `${event}: ${(err as { message?: string }).message}`)
  return [...new Set(lines)]
}
