// With a margin a session is refreshed before its tokens expire. If that early refresh fails, the current tokens are served.
import test from 'ava'
import type { HalfRefreshedSession } from '#src/cookie/session-record.js'
import { modes } from '../helpers/modes.js'
import { oauthError, upstreamError } from '../login/fake-idp.js'
import { grantsOf, setUpRefresh } from './setup.js'

for (const mode of modes) {
  const grants = grantsOf[mode]

  // The pause doubles with each refusal.
  for (const [error, pauseSeconds, thirdPauseSeconds] of [
    [upstreamError(), 1, 1],
    [oauthError('invalid_client'), 2, 8],
    [new TypeError('odd'), 1, 1]
  ] as const) {
    test(`${mode}: an early refresh that fails with "${error.message}" is repeated after ${pauseSeconds} s, and the valid tokens are served`, async t => {
      const early = { beforeExpirySeconds: 120, afterSeconds: 3500 }
      const { record, clock, idp, live, unavailable, refreshes } = await setUpRefresh(mode, early)
      idp.next(error, error, error)
      for (const calls of [1, 1, 2]) {
        t.is(await live(record), record)
        t.is(refreshes(), calls)
        clock.advance(pauseSeconds * 500)
      }
      clock.advanceSeconds(101)
      t.is((await unavailable(record)).record, record)
      clock.advanceSeconds(thirdPauseSeconds)
      t.is((await live(record)).fields.expires_at, clock.now() + 3_600_000)
      t.is(refreshes(), 3 + grants)
    })
  }

  test(`${mode}: invalid_grant at an early refresh ends the session, although its tokens are still valid`, async t => {
    const { record, idp, current } = await setUpRefresh(mode, { beforeExpirySeconds: 120, afterSeconds: 3500 })
    idp.next(oauthError('invalid_grant'))
    t.deepEqual(await current(record), { kind: 'over', end: { reason: 'refused' } })
  })
}

test('dual: if the second token request of an early refresh fails, the valid tokens are served and the new internal token is kept', async t => {
  const early = { beforeExpirySeconds: 120, afterSeconds: 3500 }
  const { record, clock, idp, live, unavailable } = await setUpRefresh('dual', early)
  idp.next({}, upstreamError())
  const partial = await live(record)
  const { public_token, expires_at } = record.fields
  t.like(partial.fields, { public_token, expires_at, refresh_token: idp.newestRefreshToken })
  t.not(partial.fields.internal_token, record.fields.internal_token)

  clock.advanceSeconds(101)
  idp.next(upstreamError())
  const later = await unavailable(partial)
  clock.advanceSeconds(1)
  const { internalExpiresAt } = partial as HalfRefreshedSession
  t.is((await live(later.record)).fields.expires_at, internalExpiresAt)
  t.deepEqual(idp.reused, [])
})
