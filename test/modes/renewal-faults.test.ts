// Only a dead refresh token ends a session; everything else a provider does wrong leaves it standing.
import test from 'ava'
import type { Coordination, Run, Settled } from '#src/coordination/coordination.js'
import { UpstreamError } from '#src/idp/errors.js'
import { createRenewals } from '#src/modes/renewal.js'
import { createRandom } from '../helpers/random.js'
import { oauthError, upstreamError } from './fake-idp.js'
import { grantsOf, modeNames, setUpRenewal } from './renewal-setup.js'

const faults: readonly (readonly [what: string, error: Error, level: 'warn' | 'error'])[] = [
  ['a timeout', new UpstreamError('token', 'timeout', 'no whole answer in time'), 'warn'],
  ['a provider that is away', new UpstreamError('token', 'unreachable', 'connection failed'), 'warn'],
  ['a server error', new UpstreamError('token', 'unusable', 'it answered 500', { status: 500 }), 'warn'],
  ['too many requests', new UpstreamError('token', 'unusable', 'it answered 429', { status: 429 }), 'warn'],
  ['a token set of the wrong types', new UpstreamError('token', 'unusable', 'access_token is missing'), 'warn'],
  ['a refusal in HTML', new UpstreamError('token', 'unusable', 'it answered 403', { status: 403 }), 'error'],
  ['invalid_client', oauthError('invalid_client'), 'error'],
  ['invalid_scope', oauthError('invalid_scope'), 'error'],
  ['a fault of our own', new TypeError('odd'), 'error']
]

/** Pino's numbers. */
const levels = { warn: 40, error: 50 }

for (const mode of modeNames) {
  const grants = grantsOf[mode]

  for (const [what, error, level] of faults) {
    test(`${mode}: ${what} leaves the session as it is, and is logged as ${level}`, async t => {
      const { record, clock, idp, unavailable, live, logs, refreshLines } = await setUpRenewal(mode)
      clock.advanceSeconds(3601)
      idp.next(error)
      const session = await unavailable(record)
      t.is(session.record, record)
      t.is(session.retryAfterSeconds, 1)
      t.is(logs.find(({ event }) => event === 'refresh_failed')?.level, levels[level])
      t.like(refreshLines()[0], { outcome: 'failed', provider_calls: 1 })

      clock.advanceSeconds(1)
      t.is((await live(record)).fields.refresh_token, idp.newestRefreshToken)
      t.deepEqual(idp.reused, [])
    })
  }

  test(`${mode}: a failure is remembered for a second, however many ask`, async t => {
    const { record, clock, idp, unavailable, live, refreshes } = await setUpRenewal(mode)
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
    const { record, clock, idp, unavailable, live, refreshes } = await setUpRenewal(mode)
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
      const { record, clock, idp, unavailable, live } = await setUpRenewal(mode)
      clock.advanceSeconds(3601)
      idp.next(oauthError('slow_down', asked))
      t.is((await unavailable(record)).retryAfterSeconds, waits)
      clock.advanceSeconds(waits)
      await live(record)
    })
  }

  test(`${mode}: with nothing to be kept a failure is still remembered`, async t => {
    const { record, clock, idp, unavailable, refreshes } = await setUpRenewal(mode, { keepSeconds: 0 })
    clock.advanceSeconds(3601)
    idp.next(upstreamError())
    await unavailable(record)
    await unavailable(record)
    t.is(refreshes(), 1)
  })

  test(`${mode}: a provider that fails half of the time loses nobody`, async t => {
    const { record, clock, idp, current } = await setUpRenewal(mode, { lifetimeSeconds: 10 })
    const random = createRandom(20_260_101)
    const luck = async () => {
      if (random() < 0.5) throw upstreamError()
      return {}
    }
    idp.next(...Array.from({ length: 2000 }, () => luck))
    let [previous, held] = [record, record]
    let renewals = 0
    for (let second = 0; second < 500; second++) {
      clock.advanceSeconds(1)
      // Another tab still sends the cookie of a moment ago.
      const [session, other] = await Promise.all([current(held), current(previous)])
      if (!('record' in session) || !('record' in other)) throw new Error(`lost after ${second} seconds`)
      if (session.record.fields.expires_at !== held.fields.expires_at) renewals++
      previous = held
      held = session.record
    }
    t.true(renewals > 20, `${renewals} renewals`)
    t.deepEqual(idp.reused, [])
  })

  for (let step = 1; step <= grants; step++) {
    test(`${mode}: a refresh token that is dead at step ${step} ends the session, for all who ask`, async t => {
      const { record, clock, idp, current, refreshes, refreshLines, logs } = await setUpRenewal(mode)
      clock.advanceSeconds(3601)
      idp.next(...Array.from({ length: step - 1 }, () => ({})), oauthError('invalid_grant'))
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

  test(`${mode}: the newest of a session whose renewal failed is itself`, async t => {
    const { record, clock, idp, unavailable, renewals } = await setUpRenewal(mode)
    clock.advanceSeconds(3601)
    idp.next(upstreamError())
    await unavailable(record)
    t.is(await renewals.newest(record), record)
  })

  test(`${mode}: a failure at a provider that does not rotate is remembered, and passes`, async t => {
    const { record, clock, idp, unavailable, live, refreshes } = await setUpRenewal(mode, { rotates: false })
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
    const { record, clock, idp, live, unavailable, renewals, refreshes } = await setUpRenewal(mode, options)
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
    t.not(await renewals.newest(record), undefined)
    t.is(refreshes(), 2 * grants)
    clock.advanceSeconds(60)
    await live(third)
    t.deepEqual(idp.reused, [])
  })

  test(`${mode}: nothing secret is written about a failure`, async t => {
    const { record, clock, idp, unavailable, logs } = await setUpRenewal(mode)
    clock.advanceSeconds(3601)
    idp.next(upstreamError())
    await unavailable(record)
    for (const secret of [...Object.values(record.fields), record.id])
      t.false(logs.lines.join('').includes(String(secret)))
  })

  test(`${mode}: a store that fails is an error, and not the end of a session`, async t => {
    const { record, clock, idp, mode: modeUnderTest, coordination, logs } = await setUpRenewal(mode)
    const failing: Coordination = { ...coordination, once: () => Promise.reject(new Error('the store is gone')) }
    const parts = {
      mode: modeUnderTest,
      idp,
      coordination: failing,
      now: clock.now,
      marginSeconds: 0,
      keepSeconds: 60,
      maxAgeSeconds: 86_400
    }
    clock.advanceSeconds(3601)
    const current = createRenewals(parts).current(record, () => logs.log)
    await t.throwsAsync(current, { message: 'the store is gone' })
  })
}

test('dual: half a refresh is kept: what still works goes to the browser, and the next request goes on from there', async t => {
  const { record, clock, idp, unavailable, live, refreshes, refreshLines, logs } = await setUpRenewal('dual')
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
  t.is(refreshes(), 4)
  t.is(whole.fields.expires_at, clock.now() + 3_600_000)
  t.not(whole.fields.public_token, record.fields.public_token)
  t.deepEqual(idp.reused, [])
})

test('dual: half a refresh is given to all who asked, and to old cookies, without asking the provider again', async t => {
  const { record, clock, idp, unavailable, refreshes } = await setUpRenewal('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(5))
  const all = await Promise.all(Array.from({ length: 50 }, () => unavailable(record)))
  clock.advanceSeconds(4)
  for (const { record: half } of [...all, await unavailable(record)]) t.deepEqual(half, all[0]?.record)
  t.is(refreshes(), 2)
})

test('dual: an old cookie goes on from the kept half when the time to wait is over', async t => {
  const { record, clock, idp, unavailable, live, refreshes } = await setUpRenewal('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(5))
  const half = await unavailable(record)
  clock.advanceSeconds(5)
  const [fromOld, fromNew] = await Promise.all([live(record), live(half.record)])
  t.deepEqual(fromOld, fromNew)
  t.is(refreshes(), 4)
  t.deepEqual(idp.reused, [])
})

test('dual: half a refresh after half a refresh still loses nothing', async t => {
  const { record, clock, idp, unavailable, live } = await setUpRenewal('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(), {}, upstreamError(), upstreamError())
  const half = await unavailable(record)
  clock.advanceSeconds(1)
  const second = await unavailable(half.record)
  t.not(second.record.fields.refresh_token, half.record.fields.refresh_token)
  clock.advanceSeconds(1)
  const third = await unavailable(second.record)
  t.is(third.record, second.record)
  clock.advanceSeconds(1)
  for (const old of [record, half.record, second.record]) {
    t.is((await live(old)).fields.refresh_token, idp.newestRefreshToken)
  }
  t.deepEqual(idp.reused, [])
})

test('dual: half a refresh at a provider that does not rotate waits, and is then tried again', async t => {
  const { record, clock, idp, unavailable, live, refreshes } = await setUpRenewal('dual', { rotates: false })
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError(5))
  const half = await unavailable(record)
  await unavailable(record)
  await unavailable(half.record)
  t.is(refreshes(), 2)
  clock.advanceSeconds(5)
  t.is((await live(half.record)).fields.expires_at, clock.now() + 3_600_000)
  t.is(refreshes(), 4)
})

test('dual: a public token of too many scopes is not handed out, and the session stands', async t => {
  const { record, clock, idp, unavailable, live } = await setUpRenewal('dual')
  clock.advanceSeconds(3601)
  idp.next({}, { scope: ['data:read', 'viewables:read'] })
  const half = await unavailable(record)
  t.is(half.record.fields.public_token, record.fields.public_token)
  t.is(half.record.fields.refresh_token, idp.newestRefreshToken)
  clock.advanceSeconds(1)
  await live(half.record)
  t.deepEqual(idp.reused, [])
})

test('dual: the newest of a session whose refresh came half way is that half', async t => {
  const { record, clock, idp, unavailable, renewals } = await setUpRenewal('dual')
  clock.advanceSeconds(3601)
  idp.next({}, upstreamError())
  const half = await unavailable(record)
  t.deepEqual(await renewals.newest(record), half.record)
})

test('dual: when a process dies between the two refreshes, another goes on from what the first one brought', async t => {
  const { record, clock, idp, mode, coordination, refreshes, logs } = await setUpRenewal('dual')
  const parts = { mode, idp, now: clock.now, marginSeconds: 0, keepSeconds: 60, maxAgeSeconds: 86_400 }
  const left = new Map<string, unknown>()
  const death = new Promise<void>(die => {
    const dying: Coordination = {
      ...coordination,
      once(key, work) {
        const leave = ({ value, keepMs }: Settled<unknown>) => {
          t.is(keepMs, 86_400_000, 'no browser was given it')
          left.set(key, value)
          die()
          return new Promise<never>(() => {})
        }
        return work({ isAlone: () => false, leave }) as Promise<never>
      }
    }
    clock.advanceSeconds(3601)
    void createRenewals({ ...parts, coordination: dying }).current(record, () => logs.log)
  })
  await death
  t.is(refreshes(), 1)

  const inheriting: Coordination = {
    ...coordination,
    async once<T>(key: string, work: (run: Run<T>) => Promise<Settled<T>>, accept: (kept: T) => boolean) {
      const value = left.get(key) as T | undefined
      if (value !== undefined && accept(value)) return { value, how: 'kept' } as const
      return coordination.once(key, work, accept)
    }
  }
  const session = await createRenewals({ ...parts, coordination: inheriting }).current(record, () => logs.log)
  t.is(session.kind === 'live' && session.record.fields.refresh_token, idp.newestRefreshToken)
  t.is(refreshes(), 3)
  t.deepEqual(idp.reused, [])
})
