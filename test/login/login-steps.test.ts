// Tests of the steps of a login as functions, without HTTP. The tests in test/http cover the same steps through HTTP.
import test, { type ExecutionContext } from 'ava'
import { createBeginLogin } from '#src/login/begin-login.js'
import { createCodeExchanges } from '#src/login/code-exchange.js'
import { type CallbackRequest, createCompleteLogin } from '#src/login/complete-login.js'
import { createLogOuts } from '#src/login/log-out.js'
import { createProfiles } from '#src/login/profiles.js'
import { createLoginTransactions, newBrowserId } from '#src/login/transaction.js'
import { createMode } from '#src/modes/modes.js'
import { createRefreshes } from '#src/refresh/index.js'
import { createKeyring } from '#src/session/keyring.js'
import type { SessionRecord } from '#src/session/record.js'
import { createSessionCookie } from '#src/session/session-cookie.js'
import { createBackground } from '#src/support/shutdown.js'
import { createClock } from '../helpers/clock.js'
import { type TestSettings, testConfig } from '../helpers/config.js'
import { collectLogs } from '../helpers/logs.js'
import { createFakeIdp } from '../modes/fake-idp.js'
import { createSharedStore, storesOf } from '../refresh/setup.js'

const known = {
  clientId: 'our-client',
  clientSecret: 'our-secret',
  authorizationEndpoint: 'https://idp.example/authorize',
  tokenEndpoint: 'https://idp.example/token',
  userinfoEndpoint: 'https://idp.example/userinfo',
  revocationEndpoint: 'https://idp.example/revoke',
  endSessionEndpoint: 'https://idp.example/logout'
}

async function setUp(overrides: TestSettings = {}) {
  const config = testConfig(known, overrides)
  const clock = createClock(1_700_000_000_000)
  const { now } = clock
  const idp = createFakeIdp()
  const keyring = createKeyring([config.session.secret])
  const transactions = createLoginTransactions(keyring.sealer('login state'), now)
  const ages = { maxAgeSeconds: config.session.maxAgeSeconds, absoluteMaxAgeSeconds: undefined }
  const sessionCookie = createSessionCookie({ sealer: keyring.sealer('session cookie'), name: 'session', ...ages, now })
  const { store } = createSharedStore(clock).connect()
  const background = createBackground()
  const mode = createMode(config, idp, now)
  const parts = { ...storesOf(store), mode, idp, transactions, sessionCookie, background, clock, access: undefined }
  const { timeoutSeconds, pkce } = config.platform
  const codeExchanges = createCodeExchanges({ ...parts, timeoutSeconds, sessionStore: 'cookie' })
  const profiles = createProfiles({ mode, idp, now, keepSeconds: 0 })
  const auth = {
    ...createRefreshes({ ...parts, ...config.refresh, timeoutSeconds }),
    ...createLogOuts({ ...parts, logout: config.logout, profiles }),
    beginLogin: createBeginLogin({ ...parts, now, pkce, maxAgeSeconds: config.session.maxAgeSeconds }),
    completeLogin: createCompleteLogin({ ...parts, now, codeExchanges })
  }
  const { log } = await collectLogs()
  const browserId = newBrowserId()
  const begin = () => transactions.begin(browserId, '/models').state
  const request = (state: string): CallbackRequest => ({
    response: { kind: 'code', state, iss: undefined, code: 'the-code' },
    browserId,
    session: undefined
  })
  async function signIn(t: ExecutionContext) {
    const completed = await auth.completeLogin(request(begin()))
    t.is(completed.kind, 'signedIn')
    if (completed.kind !== 'signedIn') throw new Error(completed.kind)
    return completed
  }
  return { auth, clock, store, idp, log, background, sessionCookie, browserId, begin, request, signIn }
}

test('beginLogin() returns the address of the provider, or reports a login loop if a session cookie was lost within the last minute', async t => {
  const { auth, clock, browserId } = await setUp()
  const first = { browserId, returnTo: '/', startedAt: undefined, succeededAt: undefined, hasSessionCookie: false }
  t.deepEqual(await auth.beginLogin(first), { kind: 'started', location: 'https://idp.example/authorize' })
  const again = { ...first, succeededAt: clock.now() }
  t.deepEqual(await auth.beginLogin(again), { kind: 'loop' })
  t.is((await auth.beginLogin({ ...again, hasSessionCookie: true })).kind, 'started')
  clock.advanceSeconds(60)
  t.is((await auth.beginLogin(again)).kind, 'started')
})

test('completeLogin() returns the session, its cookie values and the return path', async t => {
  const { sessionCookie, clock, signIn } = await setUp()
  const { session, sealed, returnTo, succeededAt, isRepeated } = await signIn(t)
  const opened = sessionCookie.open(`session=${sealed[0]}`) as SessionRecord
  t.deepEqual(opened.fields, session.fields)
  t.is(returnTo, '/models')
  t.is(succeededAt, clock.now())
  t.false(isRepeated)
})

test('completeLogin() does not send a code to the provider if the state belongs to another browser or the login cookie is missing', async t => {
  const { auth, idp, begin, request } = await setUp()
  const foreign = await auth.completeLogin({ ...request(begin()), browserId: newBrowserId() })
  t.deepEqual(foreign, { kind: 'foreign' })
  const unbound = await auth.completeLogin({ ...request(begin()), browserId: undefined })
  t.deepEqual(unbound, { kind: 'unbound', returnTo: '/models', startedAt: undefined })
  t.deepEqual(idp.grants, [])
})

test('a new login in a browser with an old copy of a cookie logs out the session of that cookie, so that every other copy ends', async t => {
  const { auth, clock, idp, log, begin, request, signIn } = await setUp()
  const { session } = await signIn(t)
  const current = (record = session) => auth.current(record, () => log)
  clock.advanceSeconds(3601)
  const refreshed = await current()
  if (refreshed.kind !== 'live') throw new Error(refreshed.kind)
  await current(refreshed.record)
  clock.advanceSeconds(61)
  t.deepEqual(await current(), refreshed)
  t.deepEqual(await current(refreshed.record), refreshed)
  const completed = await auth.completeLogin({ ...request(begin()), session })
  t.is(completed.kind, 'signedIn')
  for (const copy of [session, refreshed.record]) t.deepEqual(await current(copy), { kind: 'over', why: 'loggedOut' })
  t.deepEqual(idp.reused, [])
})

for (const [logout, location] of [
  ['local', undefined],
  ['revoke', undefined],
  ['idp', 'https://idp.example/logout']
] as const) {
  test(`with the logout setting ${logout}, logOut() returns ${location} and ${logout === 'revoke' ? 'revokes' : 'keeps'} the refresh token`, async t => {
    const { auth, store, idp, log, background, signIn } = await setUp({ logout })
    const { session } = await signIn(t)
    t.is(await auth.logOut(session, log), location)
    await background.ended()
    t.deepEqual(idp.revoked, logout === 'revoke' ? [session.fields.refresh_token] : [])
    t.true(store.isLoggedOut(session.id))
  })
}
