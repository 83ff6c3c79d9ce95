// Only an OAuth error that says the refresh token is no longer usable ends a session. All other faults leave the session
// alive. In dual mode a refresh makes two token requests: the first one for the internal token, which stays on the server, and
// the second one for the public token, which browsers get. If only the second request fails, the result of the refresh is
// partial.
import test from 'ava'
import { meaningOfError } from '#src/login/failure.js'
import { OAuthError, ProviderError, unusableTokens } from '#src/provider/provider-error.js'
import { StoreUnavailableError } from '#src/sessions/cells.js'
import { modes } from '../helpers/modes.js'
import { oauthError, throttledError, upstreamError } from '../login/fake-idp.js'
import { grantsOf, setUpExpired, setUpRefresh } from './setup.js'

const response = (status: number) =>
  new ProviderError('token', 'invalid_response', `it responded with ${status}`, { status })

const faults: readonly (readonly [what: string, error: Error, level: 'warn' | 'error'])[] = [
  ['a timeout', new ProviderError('token', 'timeout', 'no complete response in time'), 'warn'],
  ['a provider that cannot be reached', new ProviderError('token', 'unreachable', 'connection failed'), 'warn'],
  ['a server error', response(500), 'warn'],
  ['a 429 response', response(429), 'warn'],
  ['a malformed token response', new ProviderError('token', 'invalid_response', 'access_token is missing'), 'warn'],
  ['a 403 response in HTML', response(403), 'error'],
  ['invalid_client', oauthError('invalid_client'), 'error'],
  ['a code about the client', oauthError('unsupported_grant_type'), 'error'],
  ['a temporary error', oauthError('temporarily_unavailable'), 'warn'],
  ['an unexpected exception', new TypeError('odd'), 'error']
]

/** Every token request of a refresh, by its number, combined with OAuth errors that end a session. */
function refusals(steps: number): (readonly [step: number, error: string])[] {
  // In single mode, a request without scope follows (scope.test.ts).
  const codes = ['invalid_grant', 'interaction_required', ...(steps > 1 ? ['invalid_scope'] : [])]
  return Array.from({ length: steps }, (_, index) => index + 1).flatMap(step =>
    codes.map(error => [step, error] as const)
  )
}

for (const mode of modes) {
  const grants = grantsOf[mode]

  for (const [what, error, level] of faults) {
    test(`${mode}: ${what} leaves the session unchanged and is logged as ${level}`, async t => {
      const { record, clock, idp, unavailable, live, newest, logs, refreshLines } = await setUpExpired(mode)
      idp.next(error)
      const session = await unavailable(record)
      t.is(session.record, record)
      t.is(await newest(record), record)
      t.is(session.retryAfterSeconds, meaningOfError(error) === 'weak' ? 2 : 1)
      t.is(logs.first('refresh_failed')?.level, level)
      t.like(refreshLines()[0], { outcome: 'failed', provider_calls: 1 })
      for (const secret of [...Object.values(record.fields), record.id]) {
        t.false(logs.lines.join('').includes(String(secret)))
      }
      // After a 429, refreshes pause one second longer than second token requests of refreshes that have already begun.
      clock.advanceSeconds(2)
      t.is((await live(record)).fields.refresh_token, idp.newestRefreshToken)
      t.deepEqual(idp.reused, [])
    })
  }

  for (const rotates of [true, false]) {
    test(`${mode}: after a failed refresh, no request calls the provider for one second; refresh tokens ${rotates ? '' : 'do not '}rotate`, async t => {
      const { record, clock, idp, unavailable, live, refreshes } = await setUpExpired(mode, { rotates })
      idp.next(upstreamError())
      await Promise.all(Array.from({ length: 500 }, () => unavailable(record)))
      for (let times = 0; times < 500; times++) await unavailable(record)
      clock.advance(999)
      t.is((await unavailable(record)).retryAfterSeconds, 1)
      t.is(refreshes(), 1)
      clock.advance(1)
      t.is((await live(record)).fields.expires_at, clock.now() + 3_600_000)
      t.is(refreshes(), 1 + grants)
    })
  }

  for (const [asked, waits] of [
    [0, 1],
    [1, 1],
    [60, 60],
    [61, 60],
    [999_999, 60]
  ] as const) {
    test(`${mode}: a Retry-After of ${asked} seconds pauses the refresh for ${waits} seconds, and requests get the remaining seconds`, async t => {
      const { record, clock, idp, unavailable, live, refreshes } = await setUpExpired(mode)
      idp.next(oauthError('slow_down', asked))
      t.is((await unavailable(record)).retryAfterSeconds, waits)
      clock.advance(waits * 500 + 1)
      t.is((await unavailable(record)).retryAfterSeconds, Math.ceil(waits / 2))
      clock.advance(waits * 500 - 2)
      t.is((await unavailable(record)).retryAfterSeconds, 1)
      t.is(refreshes(), 1)
      clock.advance(1)
      await live(record)
    })
  }

  for (const [step, error] of refusals(grants)) {
    test(`${mode}: ${error} at token request ${step} of a refresh ends the session for all waiting and later requests`, async t => {
      const { record, clock, idp, current, refreshes, refreshLines } = await setUpExpired(mode)
      idp.next(...Array.from({ length: step - 1 }, () => ({})), oauthError(error))
      const sessions = await Promise.all(Array.from({ length: 20 }, () => current(record)))
      for (const session of sessions) t.deepEqual(session, { kind: 'over', end: { reason: 'refused' } })
      clock.advanceSeconds(10)
      t.deepEqual(await current(record), { kind: 'over', end: { reason: 'refused' } })
      t.is(refreshes(), step)
      t.like(refreshLines()[0], {
        event: 'refresh_failed',
        outcome: 'rejected',
        level: 'info',
        reason: 'provider_refused'
      })
      t.is(refreshLines().filter(({ level }) => level !== 'debug').length, 1)
    })
  }

  test(`${mode}: an unexpected error of the store is thrown and does not end the session`, async t => {
    const { record, clock, live, addProcessWith } = await setUpRefresh(mode)
    const swap = () => Promise.reject(new Error('the store is gone'))
    const failing = addProcessWith({ cells: cells => ({ ...cells, swap }) })
    clock.advanceSeconds(3601)
    await t.throwsAsync(failing.current(record), { message: 'the store is gone' })
    await live(record)
  })

  test(`${mode}: while the store cannot be used, valid tokens are served, and with expired ones the result says that the session cannot be refreshed now`, async t => {
    const { record, clock, current, live, disconnect, reconnect, refreshes, refreshLines, counted } =
      await setUpRefresh(mode)
    disconnect()
    t.is(await live(record), record)
    t.deepEqual(counted.refreshes, [])
    clock.advanceSeconds(3601)
    t.deepEqual(await current(record), { kind: 'unavailable', record, why: 'store', retryAfterSeconds: 1 })
    t.like(refreshLines()[0], { outcome: 'failed', reason: 'redis_unavailable', provider_calls: 0 })
    t.deepEqual(counted.refreshes, ['failed'])
    t.is(refreshes(), 0)
    await reconnect()
    await live(record)
    t.is(refreshes(), grants)
  })

  for (const where of ['read', 'swap'] as const) {
    test(`${mode}: if a ${where} finds stored data that cannot be read, the session is unavailable, and one log line tells the operator`, async t => {
      const { record, clock, addProcessWith, refreshes, logs } = await setUpRefresh(mode)
      const unreadable = () => Promise.reject(new StoreUnavailableError('unreadable'))
      const { current } = addProcessWith({ cells: cells => ({ ...cells, [where]: unreadable }) })
      if (where === 'swap') clock.advanceSeconds(3601)
      const session = await current(record)
      t.deepEqual(session, { kind: 'unavailable', record, why: 'unreadable', retryAfterSeconds: 5 })
      t.is(logs.all('stored_data_unreadable').length, 1)
      t.is(refreshes(), 0)
    })
  }
}

for (const rotates of [true, false]) {
  test(`dual: all requests get a partial result, and after the pause one of them repeats only the second token request; refresh tokens ${rotates ? '' : 'do not '}rotate`, async t => {
    const { record, clock, idp, unavailable, live, current, refreshes, addProcess, refreshLines, logs } =
      await setUpExpired('dual', { rotates })
    const other = addProcess()
    idp.next({}, upstreamError(5))
    const waiting = await Promise.all(Array.from({ length: 50 }, () => unavailable(record)))
    const partial = waiting[0] as (typeof waiting)[number]
    t.is(partial.retryAfterSeconds, 5)
    const { public_token, expires_at } = record.fields
    const fields = { public_token, expires_at, refresh_token: idp.newestRefreshToken }
    t.like(partial.record, { id: record.id, fields })
    t.not(partial.record.fields.internal_token, record.fields.internal_token)
    t.like(refreshLines()[0], { outcome: 'partial', provider_calls: 2 })
    t.is(logs.first('refresh_failed')?.level, 'warn')
    clock.advanceSeconds(4)
    const later = [await unavailable(record), await unavailable(partial.record)]
    for (const other of [...waiting, ...later]) t.deepEqual(other.record, partial.record)
    t.deepEqual(await other.newest(record), partial.record)
    t.is(refreshes(), 2)

    clock.advanceSeconds(1)
    const whole = await other.live(record)
    for (const old of [partial.record, record]) t.deepEqual(await live(old), whole)
    t.is(refreshes(), 3, 'only the second token request is repeated')
    t.is(whole.fields.expires_at, clock.now() - 5000 + 3_600_000)
    t.is(whole.fields.internal_token, partial.record.fields.internal_token)
    t.not(whole.fields.public_token, record.fields.public_token)
    if (rotates) t.deepEqual(idp.reused, [])
    // The pause ends with the refresh, even by a clock that is set back.
    clock.advanceSeconds(-4)
    t.deepEqual(await current(record), { kind: 'live', record: whole })
  })
}

for (const mode of modes) {
  const grants = grantsOf[mode]

  /** Runs `whileQueued` while the first refresh waits in the queue for token requests. */
  async function queued(whileQueued: (setUp: Awaited<ReturnType<typeof setUpRefresh>>) => Promise<unknown>) {
    const setUp = await setUpRefresh(mode)
    const { idp } = setUp
    const { inTokenQueue } = idp
    idp.inTokenQueue = async (...parameters) => {
      idp.inTokenQueue = inTokenQueue
      await whileQueued(setUp)
      return inTokenQueue(...parameters)
    }
    setUp.clock.advanceSeconds(3601)
    return setUp
  }

  test(`${mode}: no refresh token is sent if another reference or cookie names a newer revision while the request waits in the queue`, async t => {
    const { record, clock, current, refreshes } = await queued(async ({ record, sessions }) => {
      await sessions.current({ id: record.id, rev: record.rev + 1, key: 'key' })
    })
    const session = await clock.runUntilSettled(current(record))
    t.is(session.kind, 'unavailable')
    t.is(refreshes(), 0)
  })

  test(`${mode}: a request that waited in the queue for long still gets a fresh lease, and one that begins a pause meanwhile sends nothing`, async t => {
    const long = await queued(async ({ clock }) => clock.advance(40_001))
    await long.current(long.record)
    await long.refreshing.ended()
    t.is(long.refreshes(), grants)
    const paused = await queued(async ({ sessions }) => sessions.pause('refresh', 10_000))
    t.like(await paused.current(paused.record), { kind: 'unavailable', why: 'paused' })
    t.is(paused.refreshes(), 0)
    t.is(paused.idp.queued, 0)
  })

  test(`${mode}: tokens that arrive while the store cannot be used are served by this process, and are stored when the store is back`, async t => {
    const { record, idp, live, addProcess, disconnect, reconnect, refreshes } = await setUpExpired(mode)
    if (grants === 2) idp.next({})
    const { waiting, letGo } = await idp.hold(() => live(record))
    disconnect()
    letGo()
    const refreshed = await waiting
    for (const cookie of [record, refreshed]) t.deepEqual(await live(cookie), refreshed)
    await reconnect()
    t.deepEqual(await addProcess().live(record), refreshed)
    t.is(refreshes(), grants)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: while a stopped process may still store its tokens, no other process sends the refresh token, and invalid_grant cannot end the session`, async t => {
    const { record, clock, idp, current, refreshing, addProcess, refreshes } = await setUpRefresh(mode)
    const other = addProcess()
    clock.advanceSeconds(3601)
    const { waiting: stopped, letGo } = await idp.hold(() => current(record))
    // The other process waits for 5 seconds at each attempt.
    for (let attempt = 1; attempt <= 11; attempt++) {
      t.is((await clock.runUntilSettled(other.unavailable(record))).why, 'pending')
      t.is(refreshes(), 1, `attempt ${attempt}`)
    }
    t.like(await stopped, { kind: 'unavailable', why: 'pending' })
    letGo()
    await refreshing.ended()
    const refreshed = await clock.runUntilSettled(other.live(record))
    t.is(refreshes(), grants)
    t.is(refreshed.fields.refresh_token, idp.newestRefreshToken)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: an unknown code ends the session after 30 seconds if another session is refreshed meanwhile, with pauses that grow`, async t => {
    const { record, clock, idp, login, current, live, unavailable, refreshes, refreshLines, logs } =
      await setUpRefresh(mode)
    const other = await login('another-session')
    clock.advanceSeconds(3601)
    const began = clock.now()
    for (const seconds of [2, 4, 8, 16]) {
      idp.next(oauthError('token_unknown'))
      t.like(await unavailable(record), { record, why: 'provider', retryAfterSeconds: seconds })
      const calls = refreshes()
      clock.advance(seconds * 1000 - 1)
      t.like(await unavailable(record), { record, why: 'provider', retryAfterSeconds: 1 })
      t.is(refreshes(), calls)
      clock.advance(1)
    }
    t.is(clock.now() - began, 30_000)
    await live(other)
    idp.next(oauthError('token_unknown'))
    t.deepEqual(await current(record), { kind: 'over', end: { reason: 'refused' } })
    t.like(refreshLines()[0], { outcome: 'failed', reason: 'provider_refused' })
    const [sent, paused] = [
      logs.all('refresh_failed').filter(({ err }) => err),
      logs.all('refresh_failed').filter(({ err }) => !err)
    ]
    t.deepEqual(new Set(sent.map(({ level }) => level)), new Set(['warn']))
    t.is(sent.length, 5)
    t.like(paused[0], { level: 'info', reason: 'refresh_paused', provider_calls: 0 })
  })

  for (const [what, refusal] of [
    ['the client is blamed', new OAuthError({ error: 'unauthorized_client', status: 403, endpoint: 'token' })],
    ['the body has no code', new ProviderError('token', 'invalid_response', 'a 400', { status: 400, meaning: 'weak' })]
  ] as const) {
    test(`${mode}: while no other user is refreshed, a session never ends if ${what}, but after 30 seconds it may have ended`, async t => {
      const { record, clock, idp, live, unavailable } = await setUpExpired(mode)
      for (let minute = 0; minute < 60; minute++) {
        idp.next(refusal)
        t.is((await unavailable(record)).why, minute === 0 ? 'provider' : 'refused')
        clock.advanceSeconds(60)
      }
      await live(record)
    })

    test(`${mode}: a page that asks every 3 minutes ends if ${what}, and three other users are refreshed meanwhile`, async t => {
      const { record, clock, idp, login, live, unavailable, current } = await setUpExpired(mode)
      const others = [await login('one'), await login('two'), await login('three')]
      clock.advanceSeconds(3601)
      for (let refusals = 1; refusals < 5; refusals++) {
        idp.next(refusal)
        await unavailable(record)
        clock.advanceSeconds(180)
      }
      for (const other of others) await live(other)
      idp.next(refusal)
      t.deepEqual(await current(record), { kind: 'over', end: { reason: 'refused' } })
    })
  }

  test(`${mode}: if an unusable token response contains a new refresh token, the session keeps that refresh token`, async t => {
    const { record, clock, idp, live, unavailable } = await setUpExpired(mode)
    idp.next(() => {
      idp.rotate(record.fields.refresh_token as string, 'the-only-good-token')
      throw unusableTokens('access_token is not a non-empty string', { refreshToken: 'the-only-good-token' })
    })
    const kept = await unavailable(record)
    t.is(kept.record.fields.refresh_token, 'the-only-good-token')
    clock.advanceSeconds(1)
    for (const old of [record, kept.record]) t.is((await live(old)).fields.refresh_token, idp.newestRefreshToken)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: a 429 with Retry-After pauses the refreshes of all sessions`, async t => {
    const { record, clock, idp, live, login, unavailable, refreshes } = await setUpRefresh(mode)
    const other = await login('another-session')
    clock.advanceSeconds(3601)
    idp.next(throttledError(429, 30))
    t.is((await unavailable(record)).retryAfterSeconds, 30)
    t.is((await unavailable(other)).retryAfterSeconds, 31)
    t.is(refreshes(), 1)
    clock.advanceSeconds(31)
    for (const session of [other, record]) await live(session)
    t.is(refreshes(), 1 + 2 * grants)
  })

  test(`${mode}: during a pause for all sessions, tokens that are still valid are served`, async t => {
    const early = { beforeExpirySeconds: 120, afterSeconds: 3500 }
    const { record, sessions, live, refreshes } = await setUpRefresh(mode, early)
    sessions.pause('refresh', 20_000)
    t.is(await live(record), record)
    t.is(refreshes(), 0)
  })
}

test('dual: when a pause for all sessions ends, second token requests may be sent one second before new refreshes', async t => {
  const { record, clock, idp, login, unavailable, live } = await setUpRefresh('dual')
  const other = await login('another-session')
  clock.advanceSeconds(3601)
  idp.next({}, throttledError(429, 10))
  const partial = await unavailable(record)
  clock.advanceSeconds(10)
  await unavailable(other)
  await live(partial.record)
  clock.advanceSeconds(1)
  await live(other)
  t.deepEqual(idp.reused, [])
})
