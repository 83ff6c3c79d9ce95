// The judge of `npm run bench -- --only lost` must see a loss. These tests run its provider and its users with a program that
// loses logins, and with a program that does not.
import http from 'node:http'
import { setImmediate } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { createDeferred } from '../helpers/deferred.js'
import { listen } from '../helpers/ports.js'

interface Tokens {
  access_token: string
  refresh_token: string
}

// The benchmark is JavaScript without declarations.
const bench = new URL('../../bench/', import.meta.url)
const { startProcess } = await import(`${bench}processes.js`)
const { createUser, createTally } = await import(`${bench}lost/user.js`)
const { settle } = await import(`${bench}lost/settle.js`)
const { kindOf, outcomeOf, lastOutcome } = await import(`${bench}lost/verdict.js`)
const { createLogins } = await import(`${bench}lost/logins.js`)

const ORIGIN = 'http://localhost:8080'
const REQUESTS = 6

test('a refresh token that is used twice ends the login, and is counted once', t => {
  const logins = createLogins({ lifetimeMs: 1000, leewayMs: 0, now: () => 0 })
  const first = logins.begin('Ada', 'openid')
  const other = logins.begin('Bob', 'openid')
  const second = logins.refresh(first.refreshToken)
  t.true(logins.isAccepted(second?.accessToken ?? ''))
  t.is(logins.refresh(first.refreshToken), undefined)
  t.is(logins.refresh(first.refreshToken), undefined)
  t.like(logins.counts, { refreshes: 1, sentTwice: 1, revoked: 1 })
  t.is(logins.refresh(second?.refreshToken ?? ''), undefined, 'all tokens of the login are revoked')
  t.false(logins.isAccepted(second?.accessToken ?? ''))
  t.deepEqual(logins.revokedUsers(), ['Ada'])
  t.truthy(logins.refresh(other.refreshToken), 'other logins continue')
})

test('a provider that refuses the second use of a refresh token keeps the login', t => {
  const logins = createLogins({ lifetimeMs: 1000, leewayMs: 0, now: () => 0, reuse: 'refuses' })
  const first = logins.begin('Ada', 'openid')
  const second = logins.refresh(first.refreshToken)
  t.is(logins.refresh(first.refreshToken), undefined)
  t.like(logins.counts, { refreshes: 1, sentTwice: 1, revoked: 0 })
  t.truthy(logins.refresh(second?.refreshToken ?? ''))
})

test('a provider that allows a second use does so for 30 s, and then ends the login', t => {
  let now = 0
  const logins = createLogins({ lifetimeMs: 100_000, leewayMs: 0, now: () => now, reuse: 'allows' })
  const first = logins.begin('Ada', 'openid')
  const second = logins.refresh(first.refreshToken)
  now = 29_999
  t.truthy(logins.refresh(first.refreshToken))
  t.like(logins.counts, { refreshes: 2, sentTwice: 1, revoked: 0 })
  now = 30_000
  t.is(logins.refresh(first.refreshToken), undefined)
  t.deepEqual(logins.revokedUsers(), ['Ada'])
  t.false(logins.isAccepted(second?.accessToken ?? ''))
})

test('an access token is accepted until its lifetime and the leeway have passed', t => {
  let now = 0
  const logins = createLogins({ lifetimeMs: 3000, leewayMs: 1000, now: () => now })
  const { accessToken } = logins.begin('Ada', 'openid')
  now = 3999
  t.true(logins.isAccepted(accessToken))
  now = 4000
  t.false(logins.isAccepted(accessToken))
  t.false(logins.isAccepted('invented'))
})

const kinds: readonly (readonly [status: number | undefined, kind: string])[] = [
  [200, 'served'],
  [302, 'refused'],
  [401, 'refused'],
  [403, 'refused'],
  [500, 'failed'],
  [503, 'failed'],
  [undefined, 'unanswered']
]
for (const [status, kind] of kinds) {
  test(`a response with ${status ?? 'no status'} counts as ${kind}`, t => t.is(kindOf(status), kind))
}

test('a user is signed out only after several refusals, and only if the login cannot come back', t => {
  const refused = ['refused', 'refused', 'refused']
  const failed = ['failed', 'failed', 'failed']
  const alive = { isRevoked: false, hasCookies: true }
  t.is(outcomeOf({ ...alive, answers: ['failed', 'served'] }), 'signed in')
  t.is(outcomeOf({ ...alive, answers: refused.slice(1), isRevoked: true }), 'undecided')
  t.is(outcomeOf({ ...alive, answers: refused, isRevoked: true }), 'signed out')
  t.is(outcomeOf({ ...alive, answers: failed, isRevoked: true }), 'signed out')
  t.is(outcomeOf({ ...alive, answers: refused, hasCookies: false }), 'signed out')
  t.is(outcomeOf({ ...alive, answers: refused }), 'undecided')
  t.is(lastOutcome(refused), 'signed out')
  t.is(lastOutcome(failed), 'waiting')
})

test('a program that sends a refresh token twice loses the login, and the judge sees it', async t => {
  const { kinds, outcome, report } = await play(t, 'careless')
  t.true(kinds.includes('refused'))
  t.is(outcome, 'signed out')
  t.like(report, { sentTwice: 1, revoked: 1, revokedUsers: ['Ada'] })
})

test('a program that refreshes once keeps the login', async t => {
  const { kinds, outcome, report } = await play(t, 'careful')
  t.deepEqual(new Set(kinds), new Set(['served']))
  t.is(outcome, 'signed in')
  t.like(report, { sentTwice: 0, revoked: 0, revokedUsers: [] })
})

test('a slow refresh of an earlier case does not count as one in progress', async t => {
  const { provider, tokenRequest } = await startProvider(t)
  await provider.ask('slow', 1000)
  const refresh = tokenRequest({ grant_type: 'refresh_token', refresh_token: 'unknown' })
  const inProgress = async () => (await provider.ask('report')).inProgress
  while ((await inProgress()) === 0) await setImmediate()
  await provider.ask('begin', { seed: 2, lifetimeSeconds: 60 })
  t.is(await inProgress(), 0)
  t.is((await refresh).status, 400)
  t.is(await inProgress(), 0)
})

test('a provider that fails uses no refresh token', async t => {
  const { provider, providerUrl, tokenRequest } = await startProvider(t)
  const authorize = `${providerUrl}/authorize?redirect_uri=${ORIGIN}/callback&scope=openid`
  const { headers } = await fetch(authorize, { redirect: 'manual', headers: { 'x-user': 'Ada' } })
  const code = new URL(headers.get('location') ?? '').searchParams.get('code') ?? ''
  const { refresh_token } = (await (await tokenRequest({ grant_type: 'authorization_code', code })).json()) as Tokens
  const refresh = () => tokenRequest({ grant_type: 'refresh_token', refresh_token })
  await provider.ask('fail', 429)
  const failed = await refresh()
  t.is(failed.status, 429)
  t.truthy(failed.headers.get('retry-after'))
  await provider.ask('fail', undefined)
  t.is((await refresh()).status, 200)
})

async function startProvider(t: ExecutionContext) {
  const provider = startProcess('lost/provider.js', undefined)
  t.teardown(() => provider.stop())
  const providerUrl = await provider.ask('listen')
  // The programs refresh for every request, so no access token becomes old, however slow the machine is.
  await provider.ask('begin', { seed: 1, lifetimeSeconds: 60 })
  const tokenRequest = (form: Record<string, string>) =>
    fetch(`${providerUrl}/token`, { method: 'POST', body: new URLSearchParams(form) })
  return { provider, providerUrl, tokenRequest }
}

/** Signs one user in, sends the requests of a page at the same time, and asks the judge. */
async function play(t: ExecutionContext, manner: 'careless' | 'careful') {
  const { provider, providerUrl } = await startProvider(t)
  const port = await startProgram(t, manner, providerUrl)
  const surroundings = { origin: ORIGIN, loginPath: '/login', path: '/data', ports: () => [port], tally: createTally() }
  const user = createUser('Ada', () => 0, oneCookie(), surroundings)
  await user.signIn()
  const kinds = await Promise.all(Array.from({ length: REQUESTS }, () => user.look()))
  const { revokedUsers } = await provider.ask('report')
  const outcome = await settle(user, (id: string) => revokedUsers.includes(id))
  return { kinds, outcome, report: await provider.ask('report') }
}

async function startProgram(t: ExecutionContext, manner: string, providerUrl: string): Promise<number> {
  let tokens: Tokens | undefined
  let refreshing: Promise<Tokens | undefined> | undefined
  let arrived = 0
  const [allHere, goOn] = createDeferred()

  async function tokenRequest(form: Record<string, string>): Promise<Tokens | undefined> {
    const response = await fetch(`${providerUrl}/token`, { method: 'POST', body: new URLSearchParams(form) })
    return response.ok ? ((await response.json()) as Tokens) : undefined
  }
  function refresh(): Promise<Tokens | undefined> {
    return tokenRequest({ grant_type: 'refresh_token', refresh_token: tokens?.refresh_token ?? '' })
  }
  function refreshOnce(): Promise<Tokens | undefined> {
    refreshing ??= refresh().finally(() => {
      refreshing = undefined
    })
    return refreshing
  }
  async function serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', ORIGIN)
    if (pathname === '/login') {
      const query = new URLSearchParams({ redirect_uri: `${ORIGIN}/callback`, scope: 'openid', state: 'test' })
      response.writeHead(302, { Location: `${providerUrl}/authorize?${query}` }).end()
    } else if (pathname === '/callback') {
      tokens = await tokenRequest({ grant_type: 'authorization_code', code: searchParams.get('code') ?? '' })
      response.writeHead(302, { Location: '/', 'Set-Cookie': 'session=Ada' }).end()
    } else {
      // The requests of the page wait for each other, so that all of them have the same refresh token.
      if (++arrived === REQUESTS) goOn()
      await allHere
      const refreshed = await (manner === 'careful' ? refreshOnce() : refresh())
      if (refreshed) tokens = refreshed
      const headers = { Authorization: `Bearer ${refreshed?.access_token}` }
      response.writeHead((await fetch(`${providerUrl}/api/data`, { headers })).status).end()
    }
  }

  return listen(
    t,
    http.createServer((request, response) => void serve(request, response))
  )
}

function oneCookie() {
  let cookie = ''
  return {
    getCookieStringSync: () => cookie,
    setCookieSync(text: string) {
      cookie = text
    }
  }
}
