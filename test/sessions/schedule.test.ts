import test from 'ava'
import fc from 'fast-check'
import type { SessionRecord } from '#src/cookie/session-record.js'
import { createRefreshSchedule } from '#src/login/schedule.js'

const issuedAt = 1_700_000_000_000
const lifetimeMs = 3_600_000

function record(id: string): SessionRecord {
  const fields = { refresh_token: 'r', expires_at: issuedAt + lifetimeMs }
  return { kind: 'complete', id, rev: 1, loggedInAt: issuedAt, issuedAt, fields }
}

/** The number of milliseconds before the expiry at which the session becomes due for a refresh. */
function earlyMs(id: string, options: { beforeExpirySeconds: number; jitterSeconds: number }): number {
  let now = issuedAt
  const { isDue } = createRefreshSchedule(options, () => now)
  let [low, high] = [0, lifetimeMs]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    now = issuedAt + lifetimeMs - middle
    if (isDue(record(id))) low = middle
    else high = middle - 1
  }
  return low
}

test('with a spread, sessions that began together become due at different times within the spread, which all replicas compute', t => {
  const options = { beforeExpirySeconds: 120, jitterSeconds: 1500 }
  const early = Array.from({ length: 200 }, (_, n) => earlyMs(`session ${n}`, options))
  for (const ms of early) t.true(ms >= 119_999 && ms < 1_620_000, `${ms} ms`)
  const earliest = early.filter(ms => ms > 120_000 + 750_000).length
  t.true(earliest > 60 && earliest < 140, `${earliest} of 200 sessions are due in the earlier half of the spread`)
  t.is(early[0], earlyMs('session 0', options), 'as another replica computes it')
})

test('margin and spread together never make a session due before half of its lifetime', t => {
  fc.assert(
    fc.property(fc.string(), fc.nat(3600), fc.nat(3600), (id, beforeExpirySeconds, jitterSeconds) => {
      t.true(earlyMs(id, { beforeExpirySeconds, jitterSeconds }) <= lifetimeMs / 2)
    }),
    { numRuns: 50 }
  )
})

test('without a spread, a session becomes due when its tokens expire within the margin, or after half of its lifetime', t => {
  for (const [beforeExpirySeconds, ms] of [
    [0, 0] as const,
    [120, 119_999] as const,
    [3600, lifetimeMs / 2 - 1] as const
  ])
    t.is(earlyMs('any session', { beforeExpirySeconds, jitterSeconds: 0 }), ms)
})
