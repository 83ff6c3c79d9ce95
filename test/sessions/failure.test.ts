// When ambiguous refusals of a refresh token count as final.
import test from 'ava'
import { createSuccesses, isLasting, pauseSecondsAfter } from '#src/login/failure.js'

const MINUTE = 60_000
const since = 1_700_000_000_000
const before = since - 1
const after = since + 1

const rows: readonly (readonly [refusals: number, ms: number, otherSucceededAt: number, isOver: boolean])[] = [
  [1, 0, after, false],
  [2, 30_000, after, false],
  [3, 29_999, after, false],
  [3, 30_000, after, true],
  [3, 30_000, before, false],
  [4, 30_000, 0, false],
  [9, 10 * MINUTE - 1, 0, false],
  [9, 10 * MINUTE, 0, true],
  // Two refusals are never enough, however far apart they are.
  [2, 10 * MINUTE, after, false]
]

for (const [refusals, ms, otherSucceededAt, isOver] of rows) {
  const other =
    otherSucceededAt > since ? 'while another session was refreshed' : 'while no other session was refreshed'
  test(`${refusals} ambiguous refusals over ${ms} ms, ${other}, ${isOver ? 'end' : 'do not end'} the session`, t => {
    t.is(isLasting({ since, last: since + ms, refusals }, otherSucceededAt), isOver)
  })
}

test('the successes of a session itself do not count as those of another one', t => {
  const successes = createSuccesses()
  t.is(successes.ofOthers('a'), 0)
  successes.note('a', 1)
  t.is(successes.ofOthers('a'), 0)
  t.is(successes.ofOthers('b'), 1)
  for (const at of [3, 4]) successes.note('b', at)
  t.is(successes.ofOthers('b'), 1)
  t.is(successes.ofOthers('a'), 4)
  successes.note('a', 5)
  t.is(successes.ofOthers('b'), 5)
})

test('the pause grows with each ambiguous refusal, up to a minute', t => {
  t.deepEqual(
    [0, 1, 2, 3, 4, 5, 6, 7].map(refusals => pauseSecondsAfter(undefined, refusals)),
    [1, 2, 4, 8, 16, 32, 60, 60]
  )
  t.is(pauseSecondsAfter({ retryAfterSeconds: 20 }, 2), 20)
})
