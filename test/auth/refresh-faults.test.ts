// Only a dead refresh token ends a session. No other fault of the provider does.
import test from 'ava'
import { createRefreshes } from '#src/auth/refresh.js'
import {
  type Coordination,
  CoordinationError,
  type OnceOptions,
  type Run,
  type Settled,
  type Work
} from '#src/coordination/coordination.js'
import { UnusableTokenSetError, UpstreamError } from '#src/idp/errors.js'
import { createRandom } from '../helpers/random.js'
import { busyError, oauthError, upstreamError } from '../modes/fake-idp.js'
import { currentSession, grantsOf, modeNames, setUpRefresh } from './refresh-setup.js'

const faults: readonly (readonly [what: string, error: Error, level: 'warn' | 'error'])[] = [
  ['a timeout', new UpstreamError('token', 'timeout', 'no complete response in time'), 'warn'],
  ['a provider that is away', new UpstreamError('token', 'unreachable', 'connection failed'), 'warn'],
  ['a server error', new UpstreamError('token', 'unusable', 'it answered 500', { status: 500 }), 'warn'],
  ['too many requests', new UpstreamError('token', 'unusable', 'it answered 429', { status: 429 }), 'warn'],
  ['a token set of the wrong types', new UpstreamError('token', 'unusable', 'access_token is missing'), 'warn'],
  ['a refusal in HTML', new UpstreamError('token', 'unusable', 'it answered 403', { status: 403 }), 'error'],
  ['invalid_client', oauthError('invalid_client'), 'error'],
  ['invalid_request', oauthError('invalid_request'), 'warn'],
  ['a fault of our own', new TypeError('odd'), 'error']
]

/** Each step with each error that ends a session there. */
function refusals(steps: number): (readonly [step: number, error: string])[] {
  return Array.from({ length: steps }, (_, index) => index + 1).flatMap(step =>
    ['invalid_grant', 'invalid_scope'].map(error => [step, error] as const)
  )
}

/** Pino's numbers. */
const levels = { warn: 40, error: 50 }

for (const mode of modeNames) {
  const grants = grantsOf[mode]

  for (const [what, error, level] of faults) {
    test(`${mode}: ${what} leaves the session as it is, and is logged as ${level}`, async t => {
      const { record, clock, idp, unavailable, live, logs, refreshLines } = await setUpRefresh(mode)
      clock.advanceSeconds(3601)
      idp.next(error)
      const session = await unavailable(record)
      t.is(session.record, record)
      t.is(session.retryAfterSeconds, 1)
      t.is(logs.find(({ event }) => event === 'refresh_failed')?.level, levels[level])
      t.like(refreshLines()[0], { outcome: 'failed', provider_calls: 1 })

      // After a 429 a whole refresh may begin one second later than a second step.
      clock.advanceSeconds(2)
      t.is((await live(record)).fields.refresh_token, idp.newestRefreshToken)
      t.deepEqual(idp.reused, [])
    })
  }

  test(`${mode}: a failure is remembered for a second, however many ask`, async t => {
    const { record, clock, idp, unavailable, live, refreshes } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    idp.next(upstreamError())
    await Promise.all(Array.from({ length: 500 }, () => unavailable(record)))
    for (let times = 0; times < 500; times++) await unavailable(record)
    clock.advance(999)
    t.is((await unavailable(record)).retryAfterSeconds, 1)
    t.is(refreshes(), 1)
    clock.advance(1)
    await live(record)
    t.is(refreshes(), 1 + grants)
  })

  test(`${mode}: the time that the provider asks for is passed on, and kept to`, async t => {
    const { record, clock, idp, unavailable, live, refreshes } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    idp.next(upstreamError(30))
    t.is((await unavailable(record)).retryAfterSeconds, 30)
    clock.advance(12_500)
    t.is((await unavailable(record)).retryAfterSeconds, 18)
    clock.advance(17_499)
    t.is((await unavailable(record)).retryAfterSeconds, 1)
    t.is(refreshes(), 1)
    clock.advance(1)
    await live(record)
  })

  for (const [asked, waits] of [
    [0, 1],
    [1, 1],
    [60, 60],
    [61, 60],
    [999_999, 60]
  ] as const) {
    test(`${mode}: a provider that asks for ${asked} seconds is given ${waits}`, async t => {
      const { record, clock, idp, unavailable, live } = await setUpRefresh(mode)
      clock.advanceSeconds(3601)
      idp.next(oauthError('slow_down', asked))
      t.is((await unavailable(record)).retryAfterSeconds, waits)
      clock.advanceSeconds(waits)
      await live(record)
    })
  }

  test(`${mode}: with nothing to be kept a failure is still remembered`, async t => {
    const { record, clock, idp, unavailable, refreshes } = await setUpRefresh(mode, { keepSeconds: 0 })
    clock.advanceSeconds(3601)
    idp.next(upstreamError())
    await unavailable(record)
    await unavailable(record)
    t.is(refreshes(), 1)
  })

  test(`${mode}: a provider that fails half of the time ends no session`, async t => {
    const { record, clock, idp, current } = await setUpRefresh(mode, { lifetimeSeconds: 10 })
    const random = createRandom(20_260_101)
    const luck = async () => {
      if (random() < 0.5) throw upstreamError()
      return {}
    }
    idp.next(...Array.from({ length: 2000 }, () => luck))
    let [previous, held] = [record, record]
    let refreshes = 0
    for (let second = 0; second < 500; second++) {
      clock.advanceSeconds(1)
      // Another tab still sends the cookie of a moment ago.
      const [session, other] = await Promise.all([current(held), current(previous)])
      if (!('record' in session) || !('record' in other)) throw new Error(`lost after ${second} seconds`)
      if (session.record.fields.expires_at !== held.fields.expires_at) refreshes++
      previous = held
      held = session.record
    }
    t.true(refreshes > 20, `${refreshes} refreshes`)
    t.deepEqual(idp.reused, [])
  })

  for (const [step, error] of refusals(grants)) {
    test(`${mode}: ${error} at step ${step} ends the session, for all who ask`, async t => {
      const { record, clock, idp, current, refreshes, refreshLines, logs } = await setUpRefresh(mode)
      clock.advanceSeconds(3601)
      idp.next(...Array.from({ length: step - 1 }, () => ({})), oauthError(error))
      const sessions = await Promise.all(Array.from({ length: 20 }, () => current(record)))
      for (const session of sessions) t.deepEqual(session, { kind: 'ended' })
      clock.advanceSeconds(10)
      t.deepEqual(await current(record), { kind: 'ended' })
      t.is(refreshes(), step)
      t.like(refreshLines()[0], { outcome: 'rejected' })
      t.is(
        logs.find(({ event }) => event === 'refresh_failed'),
        undefined
      )
    })
  }

  test(`${mode}: the newest of a session whose refresh failed is itself`, async t => {
    const { record, clock, idp, unavailable, refreshing } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    idp.next(upstreamError())
    await unavailable(record)
    t.is(await refreshing.newest(record), record)
  })

  test(`${mode}: a failure at a provider that does not rotate is remembered, and passes`, async t => {
    const { record, clock, idp, unavailable, live, refreshes } = await setUpRefresh(mode, { rotates: false })
    clock.advanceSeconds(3601)
    idp.next(upstreamError())
    await unavailable(record)
    await unavailable(record)
    t.is(refreshes(), 1)
    clock.advanceSeconds(1)
    t.is((await live(record)).fields.expires_at, clock.now() + 3_600_000)
  })

  test(`${mode}: a provider that gives old refresh tokens out again does not lead round in a circle`, async t => {
    const options = { lifetimeSeconds: 10, keepSeconds: 60 }
    const { record, clock, idp, live, unavailable, refreshing, refreshes } = await setUpRefresh(mode, options)
    const { refresh_token } = record.fields
    const steps = (refreshToken: string | undefined) => [
      ...Array.from({ length: grants - 1 }, () => ({})),
      { refreshToken }
    ]
    idp.next(...steps('the-other-token'), ...steps(refresh_token))
    clock.advanceSeconds(11)
    const second = await live(record)
    clock.advanceSeconds(11)
    const third = await live(second)
    t.is(third.fields.refresh_token, refresh_token)
    clock.advanceSeconds(11)
    t.is((await unavailable(record)).retryAfterSeconds, 1)
    t.not(await refreshing.newest(record), undefined)
    t.is(refreshes(), 2 * grants)
    clock.advanceSeconds(60)
    await live(third)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: nothing secret is written about a failure`, async t => {
    const { record, clock, idp, unavailable, logs } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    idp.next(upstreamError())
    await unavailable(record)
    for (const secret of [...Object.values(record.fields), record.id])
      t.false(logs.lines.join('').includes(String(secret)))
  })

  test(`${mode}: a store that fails is an error, and not the end of a session`, async t => {
    const { record, clock, idp, mode: modeUnderTest, coordination, logs } = await setUpRefresh(mode)
    const failing: Coordination = { ...coordination, once: () => Promise.reject(new Error('the store is gone')) }
    const parts = {
      mode: modeUnderTest,
      idp,
      coordination: failing,
      now: clock.now,
      marginSeconds: 0,
      spreadSeconds: 0,
      keepSeconds: 60,
      maxAgeSeconds: 86_400
    }
    clock.advanceSeconds(3601)
    const current = currentSession(createRefreshes(parts), record, logs.log)
    await t.throwsAsync(current, { message: 'the store is gone' })
  })
}

test('dual: a partial result of a refresh is kept and sent to the browser, and the next request continues from it', async t => {
  const { record, clock, idp, unavailable, live, refreshes, refreshLines, logs } = await setUpRefresh('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(5))
  const half = await unavailable(record)
  t.is(half.retryAfterSeconds, 5)
  t.is(half.record.id, record.id)
  t.is(half.record.fields.refresh_token, idp.newestRefreshToken)
  t.not(half.record.fields.internal_token, record.fields.internal_token)
  t.is(half.record.fields.public_token, record.fields.public_token)
  t.is(half.record.fields.expires_at, record.fields.expires_at)
  t.like(refreshLines()[0], { outcome: 'partial', provider_calls: 2 })
  t.is(logs.find(({ event }) => event === 'refresh_failed')?.level, levels.warn)

  const whole = await live(half.record)
  t.is(refreshes(), 3, 'only the second step is repeated')
  t.is(whole.fields.expires_at, clock.now() + 3_600_000)
  t.is(whole.fields.internal_token, half.record.fields.internal_token)
  t.not(whole.fields.public_token, record.fields.public_token)
  t.deepEqual(idp.reused, [])
})

test('dual: half a refresh is given to all who asked, and to old cookies, without asking the provider again', async t => {
  const { record, clock, idp, unavailable, refreshes } = await setUpRefresh('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(5))
  const all = await Promise.all(Array.from({ length: 50 }, () => unavailable(record)))
  clock.advanceSeconds(4)
  for (const { record: half } of [...all, await unavailable(record)]) t.deepEqual(half, all[0]?.record)
  t.is(refreshes(), 2)
})

test('dual: a request with an old cookie continues from the partial result after the pause', async t => {
  const { record, clock, idp, unavailable, live, refreshes } = await setUpRefresh('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(5))
  const half = await unavailable(record)
  clock.advanceSeconds(5)
  const [fromOld, fromNew] = await Promise.all([live(record), live(half.record)])
  t.deepEqual(fromOld, fromNew)
  t.is(refreshes(), 3)
  t.deepEqual(idp.reused, [])
})

test('dual: an old cookie is led to the finished refresh at once, although the pause after the half is not over', async t => {
  const { record, clock, idp, unavailable, live, refreshing, logs } = await setUpRefresh('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(5))
  const half = await unavailable(record)
  clock.advanceSeconds(5)
  const whole = await live(half.record)
  clock.advanceSeconds(-4)
  const late = await currentSession(refreshing, record, logs.log)
  t.deepEqual(late, { kind: 'live', record: whole })
})

test('dual: a half-finished refresh whose internal token has expired begins again', async t => {
  const { record, clock, idp, unavailable, live, refreshes } = await setUpRefresh('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError())
  const half = await unavailable(record)
  clock.advanceSeconds(3600)
  const whole = await live(half.record)
  t.is(refreshes(), 4)
  t.not(whole.fields.internal_token, half.record.fields.internal_token)
})

test('dual: second steps that fail again and again lose nothing', async t => {
  const { record, clock, idp, unavailable, live, refreshes } = await setUpRefresh('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(), upstreamError(), upstreamError())
  const half = await unavailable(record)
  for (let times = 0; times < 2; times++) {
    clock.advanceSeconds(1)
    t.is((await unavailable(half.record)).record, half.record)
  }
  clock.advanceSeconds(1)
  for (const old of [record, half.record]) t.is((await live(old)).fields.refresh_token, idp.newestRefreshToken)
  t.is(refreshes(), 5)
  t.deepEqual(idp.reused, [])
})

test('dual: half a refresh at a provider that does not rotate waits, and is then tried again', async t => {
  const { record, clock, idp, unavailable, live, refreshes } = await setUpRefresh('dual', { rotates: false })
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(5))
  const half = await unavailable(record)
  await unavailable(record)
  await unavailable(half.record)
  t.is(refreshes(), 2)
  clock.advanceSeconds(5)
  const whole = await live(half.record)
  t.is(whole.fields.expires_at, clock.now() - 5000 + 3_600_000)
  t.is(refreshes(), 3)
})

test('dual: a public token of too many scopes is not handed out, and the session stands', async t => {
  const { record, clock, idp, unavailable, live } = await setUpRefresh('dual')
  clock.advanceSeconds(3601)
  idp.next({}, { scope: ['data:read', 'viewables:read'] })
  const half = await unavailable(record)
  t.is(half.record.fields.public_token, record.fields.public_token)
  t.is(half.record.fields.refresh_token, idp.newestRefreshToken)
  clock.advanceSeconds(1)
  await live(half.record)
  t.deepEqual(idp.reused, [])
})

test('dual: the newest form of a session whose refresh failed halfway is the partial result', async t => {
  const { record, clock, idp, unavailable, refreshing } = await setUpRefresh('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError())
  const half = await unavailable(record)
  t.deepEqual(await refreshing.newest(record), half.record)
})

test('dual: when a process dies between the two steps, another resumes from the checkpoint', async t => {
  const { record, clock, idp, mode, coordination, refreshes, logs } = await setUpRefresh('dual')
  const ages = { marginSeconds: 0, spreadSeconds: 0, keepSeconds: 60, maxAgeSeconds: 86_400 }
  const parts = { mode, idp, now: clock.now, ...ages }
  const checkpoints = new Map<string, unknown>()
  const death = new Promise<void>(die => {
    const dying: Coordination = {
      ...coordination,
      once(key, work) {
        const checkpoint = ({ value, keepMs }: Settled<unknown>) => {
          t.is(keepMs, 86_400_000, 'no browser was given it')
          checkpoints.set(key, value)
          die()
          return new Promise<never>(() => {})
        }
        return work({ ...runAlone, checkpoint }) as Promise<never>
      }
    }
    clock.advanceSeconds(3601)
    void currentSession(createRefreshes({ ...parts, coordination: dying }), record, logs.log)
  })
  await death
  t.is(refreshes(), 1)

  const inheriting: Coordination = {
    ...coordination,
    async once<T>(key: string, work: Work<T>, options: OnceOptions<T>) {
      const value = checkpoints.get(key) as T | undefined
      if (value !== undefined && options.accept?.(value)) return { value, how: 'kept' } as const
      return coordination.once(key, work, options)
    }
  }
  const session = await currentSession(createRefreshes({ ...parts, coordination: inheriting }), record, logs.log)
  t.is(session.kind === 'live' && session.record.fields.refresh_token, idp.newestRefreshToken)
  t.is(refreshes(), 2)
  t.deepEqual(idp.reused, [])
})

test('dual: the second step is not made when the lock may have been lost', async t => {
  const { record, clock, idp, mode, coordination, refreshes, logs } = await setUpRefresh('dual')
  const ages = { marginSeconds: 0, spreadSeconds: 0, keepSeconds: 60, maxAgeSeconds: 86_400 }
  // The lock is checked before each of the two steps.
  let checks = 0
  const ensureOwned = async () => {
    checks += 1
    if (checks === 2) throw new CoordinationError('store')
  }
  const losing: Coordination = {
    ...coordination,
    once: (key, work, options) => coordination.once(key, run => work({ ...run, ensureOwned }), options)
  }
  clock.advanceSeconds(3601)
  const refreshing = createRefreshes({ mode, idp, now: clock.now, ...ages, coordination: losing })
  const session = await currentSession(refreshing, record, logs.log)
  if (session.kind !== 'unavailable') throw new Error(session.kind)
  t.is(session.record.fields.refresh_token, idp.newestRefreshToken)
  t.is(refreshes(), 1)
})

for (const mode of modeNames) {
  test(`${mode}: no token is used by a run that has lost its lock before the first step`, async t => {
    const { record, clock, idp, mode: modeUnderTest, coordination, refreshes, logs } = await setUpRefresh(mode)
    const ages = { marginSeconds: 0, spreadSeconds: 0, keepSeconds: 60, maxAgeSeconds: 86_400 }
    const ensureOwned = () => Promise.reject(new CoordinationError('store'))
    const losing: Coordination = {
      ...coordination,
      once: (key, work, options) => coordination.once(key, run => work({ ...run, ensureOwned }), options)
    }
    clock.advanceSeconds(3601)
    const refreshing = createRefreshes({ mode: modeUnderTest, idp, now: clock.now, ...ages, coordination: losing })
    const session = await currentSession(refreshing, record, logs.log)
    t.deepEqual(session, { kind: 'unavailable', record, retryAfterSeconds: 1 })
    t.is(refreshes(), 0)
  })

  test(`${mode}: no token is used while the store cannot say whether an earlier result has been replaced`, async t => {
    const { record, clock, idp, mode: modeUnderTest, coordination, refreshes, logs } = await setUpRefresh(mode)
    const ages = { marginSeconds: 0, spreadSeconds: 0, keepSeconds: 60, maxAgeSeconds: 86_400 }
    let isAway = false
    const leaving: Coordination = {
      ...coordination,
      update: async (key, change) => {
        if (isAway) throw new CoordinationError('store', 2)
        return coordination.update(key, change)
      }
    }
    const refreshing = createRefreshes({ mode: modeUnderTest, idp, now: clock.now, ...ages, coordination: leaving })
    const ask = () => refreshing.refresh(record, logs.log, { reachesBrowser: false })
    clock.advanceSeconds(3601)
    t.is((await ask()).kind, 'live')
    clock.advanceSeconds(3601)
    isAway = true
    t.is((await ask()).kind, 'unavailable')
    t.is(refreshes(), grantsOf[mode])
    isAway = false
    t.is((await ask()).kind, 'live')
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: a refusal is not believed while an earlier owner of the lock may still deliver`, async t => {
    const { record, clock, idp, mode: modeUnderTest, coordination, logs } = await setUpRefresh(mode)
    const ages = { marginSeconds: 0, spreadSeconds: 0, keepSeconds: 60, maxAgeSeconds: 86_400 }
    const stalled: Coordination = {
      ...coordination,
      once: (key, work, options) => coordination.once(key, run => work({ ...run, stalledOwnerMs: 35_000 }), options)
    }
    clock.advanceSeconds(3601)
    idp.next(oauthError('invalid_grant'))
    const refreshing = createRefreshes({ mode: modeUnderTest, idp, now: clock.now, ...ages, coordination: stalled })
    const current = () => currentSession(refreshing, record, logs.log)
    t.deepEqual(await current(), { kind: 'unavailable', record, retryAfterSeconds: 35 })
    clock.advanceSeconds(34)
    t.deepEqual(await current(), { kind: 'unavailable', record, retryAfterSeconds: 1 })
    clock.advanceSeconds(1)
    t.deepEqual(await current(), { kind: 'ended' })
    t.is(idp.grants.length, grantsOf[mode] + 1)
  })

  test(`${mode}: invalid_request ends a session when it has been repeated for half a minute`, async t => {
    const { record, clock, idp, current, unavailable, refreshes } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    idp.next(...Array.from({ length: 40 }, () => oauthError('invalid_request')))
    for (let second = 0; second < 30; second++) {
      t.is((await unavailable(record)).record, record)
      clock.advanceSeconds(1)
    }
    t.deepEqual(await current(record), { kind: 'ended' })
    t.is(refreshes(), 31)
  })

  test(`${mode}: invalid_request that passes ends nothing`, async t => {
    const { record, clock, idp, live, unavailable } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    idp.next(oauthError('invalid_request'))
    await unavailable(record)
    clock.advanceSeconds(20)
    const refreshed = await live(record)
    clock.advanceSeconds(3601)
    idp.next(oauthError('invalid_request'))
    await unavailable(refreshed)
    clock.advanceSeconds(1)
    await live(refreshed)
    t.pass()
  })

  test(`${mode}: the refresh token of an answer that cannot be used is kept`, async t => {
    const { record, clock, idp, live, unavailable } = await setUpRefresh(mode)
    clock.advanceSeconds(3601)
    idp.next(() => {
      idp.rotate(record.fields.refresh_token as string, 'the-only-good-token')
      throw new UnusableTokenSetError('access_token is not a non-empty string', 'the-only-good-token')
    })
    const kept = await unavailable(record)
    t.is(kept.record.fields.refresh_token, 'the-only-good-token')
    clock.advanceSeconds(1)
    for (const old of [record, kept.record]) t.is((await live(old)).fields.refresh_token, idp.newestRefreshToken)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: a 429 pauses the refreshes of all sessions for the time that the provider asks for`, async t => {
    const { record, clock, idp, mode: modeUnderTest, live, unavailable, refreshes } = await setUpRefresh(mode)
    const { fields } = await modeUnderTest.exchangeCode({ code: 'd', codeVerifier: 'v', nonce: 'n' })
    const other = { id: 'another-session', loggedInAt: clock.now(), issuedAt: clock.now(), fields }
    const before = refreshes()
    clock.advanceSeconds(3601)
    idp.next(busyError(429, 30))
    t.is((await unavailable(record)).retryAfterSeconds, 30)
    t.is((await unavailable(other)).retryAfterSeconds, 31)
    t.is(refreshes(), before + 1)
    clock.advanceSeconds(31)
    await live(other)
    await live(record)
    t.is(refreshes(), before + 1 + 2 * grantsOf[mode])
  })

  test(`${mode}: during a pause tokens that are still valid are served`, async t => {
    const { record, clock, coordination, live, refreshes } = await setUpRefresh(mode, { marginSeconds: 120 })
    clock.advanceSeconds(3500)
    coordination.pauseCalls(20_000)
    t.is(await live(record), record)
    t.is(refreshes(), 0)
  })
}

test('dual: after a pause second steps go first', async t => {
  const { record, clock, idp, mode, unavailable, live } = await setUpRefresh('dual')
  const { fields } = await mode.exchangeCode({ code: 'd', codeVerifier: 'v', nonce: 'n' })
  const other = { id: 'another-session', loggedInAt: clock.now(), issuedAt: clock.now(), fields }
  clock.advanceSeconds(3601)
  idp.next({}, busyError(429, 10))
  const half = await unavailable(record)
  clock.advanceSeconds(10)
  await unavailable(other)
  await live(half.record)
  clock.advanceSeconds(1)
  await live(other)
  t.deepEqual(idp.reused, [])
})

const runAlone: Run<never> = {
  stalledOwnerMs: 0,
  previous: undefined,
  remainingMs: () => 60_000,
  checkpoint: async () => {},
  ensureOwned: async () => {}
}
