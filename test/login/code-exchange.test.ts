import test from 'ava'
import { createKeyring } from '#src/cookie/keyring.js'
import type { Access } from '#src/login/access.js'
import { createCodeExchanges } from '#src/login/code-exchange.js'
import { createEvidence } from '#src/login/evidence.js'
import { createLoginTransactions, type LoginTransaction, newBrowserId } from '#src/login/transaction.js'
import { OAuthError, ProviderError, unusableTokens } from '#src/provider/provider-error.js'
import { createClock } from '../helpers/clock.js'
import { createMode, createSharedStore } from '../sessions/setup.js'
import { createFakeIdp, oauthError, throttledError, upstreamError } from './fake-idp.js'

function setUp({
  isDual = false,
  sessionStore = 'cookie' as 'cookie' | 'redis',
  access = undefined as Access | undefined
} = {}) {
  const clock = createClock(1_700_000_000_000)
  const idp = createFakeIdp()
  const options = { idp, clientId: 'our-client', keepsIdToken: false, now: clock.now }
  const mode = createMode[isDual ? 'dual' : 'single'](options)
  const shared = createSharedStore(clock)
  const joinedAgain: string[] = []
  const denied: unknown[] = []
  const userSessions = { join: async () => true, joinAgain: (id: string) => void joinedAgain.push(id), addNames() {} }
  const addProcess = () => {
    const connected = shared.connect()
    const { sessions } = connected
    const evidence = createEvidence()
    const dependencies = { evidence, mode, idp, sessions, userSessions, clock, timeoutSeconds: 10, sessionStore }
    const exchanges = createCodeExchanges({ ...dependencies, access, log: { warn() {} } })
    const exchange = (transaction: LoginTransaction, code: string) =>
      exchanges.exchange(transaction, code, async (...user) => void denied.push(user))
    return { ...connected, ...exchanges, exchange }
  }
  const sealer = createKeyring(['the secret of these exchange tests']).sealer('login state')
  const { begin, open } = createLoginTransactions(sealer, clock.now)
  const browser = newBrowserId()
  /** Returns a function that opens the state of a new login. Each call opens the state again, as each callback request does. */
  const login = () => {
    const { state } = begin(browser, '/')
    return () => {
      const opened = open(state, browser)
      if (opened.kind !== 'valid') throw new Error(`the state is ${opened.kind}`)
      return opened.transaction
    }
  }
  return { ...addProcess(), clock, idp, joinedAgain, denied, addProcess, login }
}

test('a login whose session will be in Redis gets a random key, and a repeated callback gets the same key', async t => {
  const { exchange, login, addProcess } = setUp({ sessionStore: 'redis' })
  const [one, two] = [login(), login()]
  const fresh = await exchange(one(), 'a')
  const repeated = await addProcess().exchange(one(), 'a')
  const other = await exchange(two(), 'b')
  if (!('record' in fresh) || !('record' in repeated) || !('record' in other)) return t.fail()
  t.is(repeated.kind, 'repeated')
  t.regex(fresh.record.key ?? '', /^[A-Za-z0-9_-]{32}$/)
  t.is(repeated.record.key, fresh.record.key)
  t.not(other.record.key, fresh.record.key)
})

test('after a code was rejected, no further code is exchanged for the same state', async t => {
  const { exchange, login, idp, clock } = setUp()
  const transaction = login()
  idp.next(oauthError('invalid_grant'))
  const refusals = await Promise.all(Array.from({ length: 10 }, (_, n) => exchange(transaction(), `code ${n}`)))
  for (const refusal of refusals) t.deepEqual(refusal, { kind: 'codeRejected', error: 'invalid_grant' })
  clock.advanceSeconds(590)
  t.deepEqual(await exchange(transaction(), 'another code'), { kind: 'codeRejected' })
  t.is(idp.grants.length, 1)
})

test('a rejected code is reported as rejected, although the store becomes unavailable meanwhile', async t => {
  const { exchange, login, idp, disconnect } = setUp()
  const { waiting, letGo } = await idp.hold(() => exchange(login()(), 'c'), oauthError('invalid_grant'))
  disconnect()
  letGo()
  t.deepEqual(await waiting, { kind: 'codeRejected', error: 'invalid_grant' })
})

test('a 429 at the code exchange pauses all logins and no refresh, and no code is sent during the pause', async t => {
  const { exchange, login, idp, clock, sessions } = setUp()
  idp.next(throttledError(429, 7))
  await t.throwsAsync(exchange(login()(), 'c'))
  t.is(sessions.pausedMs('login'), 7000)
  t.is(sessions.pausedMs('refresh'), 0)
  const transaction = login()
  await t.throwsAsync(exchange(transaction(), 'c'), { instanceOf: ProviderError, message: /pause/ })
  t.is(idp.grants.length, 1)
  clock.advanceSeconds(8)
  t.is((await exchange(transaction(), 'c')).kind, 'fresh')
})

for (const error of [oauthError('invalid_client'), upstreamError(), new TypeError('odd')]) {
  test(`a code exchange that fails with "${error.message}" fails for all waiting callbacks, and a later callback may repeat it`, async t => {
    const { exchange, login, idp } = setUp()
    const transaction = login()
    idp.next(error)
    const failures = [t.throwsAsync(exchange(transaction(), 'c')), t.throwsAsync(exchange(transaction(), 'c'))]
    for (const failure of failures) t.is(await failure, error)
    t.is(idp.grants.length, 1)
    t.is((await exchange(transaction(), 'c')).kind, 'fresh')
  })
}

test('two logins of one browser do not wait for each other', async t => {
  const { exchange, login, idp } = setUp()
  const { waiting: first, letGo } = await idp.hold(() => exchange(login()(), 'a'))
  t.is((await exchange(login()(), 'b')).kind, 'fresh')
  letGo()
  t.is((await first).kind, 'fresh')
})

test('if the process dies during a code exchange, callbacks at another process are told to come back for 65 seconds, and the code is not sent again', async t => {
  const { exchange, login, idp, clock, addProcess } = setUp()
  const other = addProcess()
  const started = clock.now()
  const transaction = login()
  const { waiting: dying } = await idp.hold(() => exchange(transaction(), 'the-code'))
  t.deepEqual(await clock.runUntilSettled(dying), { kind: 'pending' })
  for (const seconds of [11, 59]) {
    clock.advance(started + seconds * 1000 - clock.now())
    t.deepEqual(await clock.runUntilSettled(other.exchange(transaction(), 'the-code')), { kind: 'pending' })
    t.is(idp.grants.length, 1)
  }
  clock.advance(started + 65_000 - clock.now())
  // The dead process may have sent the code.
  t.deepEqual(await other.exchange(transaction(), 'the-code'), { kind: 'used' })
  t.is(idp.grants.length, 1)
  t.is((await other.exchange(login()(), 'another-code')).kind, 'fresh')
})

test('dual: while a login takes longer than its lease, no other process sends its code, and its result counts', async t => {
  const { exchange, login, idp, clock, addProcess, ended } = setUp({ isDual: true })
  const other = addProcess()
  const transaction = login()
  idp.next({})
  const { waiting, letGo } = await idp.hold(() => exchange(transaction(), 'the-code'))
  t.deepEqual(await clock.runUntilSettled(waiting), { kind: 'pending' })
  clock.advanceSeconds(66)
  t.deepEqual(await other.exchange(transaction(), 'the-code'), { kind: 'used' })
  letGo()
  await ended()
  for (const process of [{ exchange }, other])
    t.is((await process.exchange(transaction(), 'the-code')).kind, 'repeated')
  t.deepEqual([idp.grants.length, idp.reused, idp.revoked], [2, [], []])
})

test('while the store cannot be used, no code is sent, and the callback may be repeated', async t => {
  const { exchange, login, idp, disconnect, reconnect } = setUp()
  const transaction = login()
  disconnect()
  await t.throwsAsync(exchange(transaction(), 'c'), { message: /Redis is unavailable/ })
  t.is(idp.grants.length, 0)
  await reconnect()
  t.is((await exchange(transaction(), 'c')).kind, 'fresh')
})

test('the session of a user who is denied ends also if the request has stopped waiting by then', async t => {
  const denial = { reason: 'denied', problem: 'not_listed', missing: [] } as const
  const access: Access = { judge: () => 'denied', decide: async () => denial }
  const { exchange, login, idp, clock, ended, denied } = setUp({ access })
  const transaction = login()
  const { waiting, letGo } = await idp.hold(() => exchange(transaction(), 'the-code'))
  t.deepEqual(await clock.runUntilSettled(waiting), { kind: 'pending' })
  letGo()
  await ended()
  t.deepEqual(denied, [[denial, undefined]])
  t.deepEqual(await exchange(transaction(), 'the-code'), { kind: 'denied', denial })
  t.is(denied.length, 1)
})

test('a repeated callback adds the session to its lists again, because the first process may have ended before it did', async t => {
  const { exchange, login, addProcess, joinedAgain } = setUp()
  const transaction = login()
  const fresh = await exchange(transaction(), 'the-code')
  t.deepEqual([fresh.kind, joinedAgain], ['fresh', []])
  t.is((await addProcess().exchange(transaction(), 'the-code')).kind, 'repeated')
  t.deepEqual(joinedAgain, [transaction().id.slice(0, 22)])
})

test('a session for Redis that Redis does not have yet gets no cookie, until it is stored', async t => {
  const { exchange, login, idp, clock, sessions, disconnect, reconnect } = setUp({ sessionStore: 'redis' })
  const transaction = login()
  const { waiting, letGo } = await idp.hold(() => exchange(transaction(), 'the-code'))
  disconnect()
  letGo()
  t.deepEqual(await waiting, { kind: 'pending' })
  await reconnect()
  await clock.runUntilSettled(sessions.saved())
  t.is((await exchange(transaction(), 'the-code')).kind, 'repeated')
  t.is(idp.grants.length, 1)
})

test('dual: while one login waits as a 429 asked, others wait too, and the pause does not become longer', async t => {
  const { exchange, login, idp, clock, sessions } = setUp({ isDual: true })
  const first = await idp.hold(() => exchange(login()(), 'first'))
  const second = await idp.hold(() => exchange(login()(), 'second'))
  idp.next(throttledError(429, 3))
  first.letGo()
  await new Promise(resolve => setImmediate(resolve))
  clock.advance(500)
  second.letGo()
  await new Promise(resolve => setImmediate(resolve))
  t.is(sessions.pausedMs('login'), 2500)
  const logins = Promise.all([first.waiting, second.waiting])
  for (const { kind } of await clock.runUntilSettled(logins)) t.is(kind, 'fresh')
  t.deepEqual(idp.revoked, [])
})

test('a logout while the code is exchanged at another process wins, and the refresh token of the login is revoked', async t => {
  const { exchange, login, idp, addProcess, sessions } = setUp()
  const transaction = login()
  const { waiting, letGo } = await idp.hold(() => exchange(transaction(), 'the-code'))
  const id = transaction().id.slice(0, 22)
  await addProcess().sessions.end({ id })
  t.is(sessions.known(id).kind, 'over')
  letGo()
  t.deepEqual(await waiting, { kind: 'used' })
  t.deepEqual(idp.revoked, [idp.newestRefreshToken])
})

// The provider may have used the refresh token before it responded with 503 and no Retry-After.
const faults = [
  oauthError('invalid_grant'),
  oauthError('invalid_client'),
  oauthError('invalid_scope'),
  upstreamError(),
  throttledError(503)
]

// test/web/routes/callback.test.ts has the faults of the first request for the public token.
for (const error of faults) {
  test(`dual: if the repeated request for the public token fails with "${error.message}", the login fails and its refresh token is revoked`, async t => {
    const { exchange, login, idp, clock } = setUp({ isDual: true })
    const transaction = login()
    idp.next({}, throttledError(429, 1), error)
    const failed = t.throwsAsync(exchange(transaction(), 'c'), { instanceOf: ProviderError })
    const thrown = await clock.runUntilSettled(failed)
    // The provider accepted the code. Signing in again would fail in the same way, so the error is reported as the provider's.
    if (error instanceof OAuthError) t.true(thrown?.message.includes(error.error))
    else t.is(thrown, error)
    t.is(idp.grants.length, 3)
    t.deepEqual(idp.revoked, ['refresh-token-1'])
    t.deepEqual(await exchange(transaction(), 'c'), { kind: 'used' })
  })
}

test('dual: if the response to the request for the public token is unusable and has a refresh token, that one is revoked', async t => {
  const { exchange, login, idp } = setUp({ isDual: true })
  idp.next({}, unusableTokens('access_token is missing', { refreshToken: 'the-newest-token' }))
  await t.throwsAsync(exchange(login()(), 'c'), { instanceOf: ProviderError })
  t.deepEqual(idp.revoked, ['the-newest-token'])
})

for (const status of [429, 503] as const) {
  for (const seconds of [0, 1, 10]) {
    test(`dual: if the request for the public token gets ${status} with Retry-After ${seconds}, the login waits and repeats the request once`, async t => {
      const { exchange, login, idp, clock } = setUp({ isDual: true })
      const started = clock.now()
      idp.next({}, throttledError(status, seconds))
      const transaction = login()
      // The request of the browser ends after 10 seconds, so a second callback may have to fetch the result.
      const exchanged = await clock
        .runUntilSettled(exchange(transaction(), 'c'))
        .catch(() => exchange(transaction(), 'c'))
      if (!('record' in exchanged)) throw new Error(exchanged.kind)
      t.like(exchanged.record.fields, { internal_token: 'access-token-1', public_token: 'access-token-3' })
      t.like(exchanged.record.fields, { refresh_token: 'refresh-token-3', expires_at: started + 3_600_000 })
      t.is(clock.now() - started, seconds * 1000)
      const request = { type: 'refresh', refreshToken: 'refresh-token-1', scope: 'viewables:read' } as const
      t.deepEqual(idp.grants.slice(1), [request, request])
      t.deepEqual([idp.reused, idp.revoked], [[], []])
    })
  }
}

const interruptions = [
  { what: 'a Retry-After of 11 seconds', answers: [throttledError(429, 11)], waitedMs: 0, pausedMs: 11_000 },
  { what: 'a Retry-After of 30 seconds', answers: [throttledError(429, 30)], waitedMs: 0, pausedMs: 30_000 },
  { what: 'a 429 without Retry-After', answers: [throttledError(429)], waitedMs: 0, pausedMs: 1000 },
  { what: 'a second 429', answers: [throttledError(429, 5), throttledError(429, 7)], waitedMs: 5000, pausedMs: 7000 },
  {
    what: 'a full queue of calls to the provider',
    answers: [new ProviderError('token', 'queue_full', 'not made')],
    waitedMs: 0,
    pausedMs: 0
  }
]

for (const { what, answers, waitedMs, pausedMs } of interruptions) {
  test(`dual: if ${what} prevents the request for the public token, all logins pause, the login is interrupted, and its refresh token is revoked`, async t => {
    const { exchange, login, idp, clock, sessions, addProcess } = setUp({ isDual: true })
    const other = addProcess()
    const started = clock.now()
    idp.next({}, ...answers)
    const transaction = login()
    const result = await clock.runUntilSettled(exchange(transaction(), 'c'))
    t.deepEqual(result, { kind: 'interrupted', cause: answers.at(-1) as ProviderError })
    t.is(clock.now() - started, waitedMs)
    for (const paused of [sessions, other.sessions]) {
      t.deepEqual([paused.pausedMs('login'), paused.pausedMs('refresh')], [pausedMs, 0])
    }
    t.is(idp.grants.length, 1 + answers.length)
    t.deepEqual(idp.revoked, ['refresh-token-1'])
    t.deepEqual(await exchange(transaction(), 'c'), { kind: 'used' })
    t.is(idp.grants.length, 1 + answers.length)
    t.is(idp.queued, 0)
  })
}
