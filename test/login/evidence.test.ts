// When refusals of a refresh token prove that it is invalid.
import test from 'ava'
import fc from 'fast-check'
import { createEvidence, refusalIn, type SeenRefusal } from '#src/login/evidence.js'
import { pauseSecondsAfter } from '#src/login/failure.js'
import { OAuthError, ProviderError } from '#src/provider/provider-error.js'
import type { RefusalSeries } from '#src/sessions/index.js'
import { refusedAgain } from '#src/sessions/transitions.js'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const NOW = 1_700_000_000_000

const AMBIGUOUS: SeenRefusal = { meaning: 'ambiguous', what: '', seenBy: 'me', series: 'ambiguous' }

test('ambiguous refusals end a session after 30 seconds if another one was refreshed since the first, and else after 10 minutes', t => {
  for (const [refusals, ms, otherAt, expected] of [
    [3, 29_999, 1, false],
    [3, 30_000, 1, true],
    [3, 30_000, 0, false],
    [9, 10 * MINUTE - 1, undefined, false],
    [3, 10 * MINUTE, undefined, true],
    // Two refusals are never enough, however far apart they are.
    [2, DAY, 1, false]
  ] as const) {
    const evidence = createEvidence()
    const by = { session: 'a', user: 'ada' }
    evidence.refreshed(by, 'me', undefined, NOW + 1)
    if (otherAt !== undefined) evidence.refreshed({ session: 'b', user: 'ada' }, 'me', undefined, NOW + otherAt)
    const series = { since: NOW, last: NOW + ms, refusals }
    t.is(evidence.refused(AMBIGUOUS, by, series), expected, `${refusals} refusals over ${ms} ms, ${otherAt}`)
  }
})

test('a refusal belongs to a series of its status, its code, the process and its credentials, unless its code is of another kind', t => {
  const oauth = (status: number, error: string) => new OAuthError({ error, status, endpoint: 'token' })
  const without = new ProviderError('token', 'invalid_response', 'a page', { status: 403, meaning: 'weak' })
  t.like(refusalIn(oauth(403, 'unauthorized_client'), 'me'), { series: 'me 403 unauthorized_client' })
  t.like(refusalIn(without, 'me'), { series: 'me 403 ' })
  t.like(refusalIn(oauth(400, 'invalid_request'), 'me'), { meaning: 'ambiguous', series: 'ambiguous' })
  for (const error of [oauth(400, 'invalid_grant'), oauth(404, 'invalid_client'), new Error('a fault')]) {
    t.is(refusalIn(error, 'me'), undefined)
  }
})

const WEAK = refusalIn(
  new OAuthError({ error: 'unauthorized_client', status: 403, endpoint: 'token' }),
  'me'
) as SeenRefusal

/** The minutes at which the session of the user `x` is refused, and the other refreshes in between. */
interface Story {
  readonly refused: readonly number[]
  readonly others?: readonly string[]
  readonly seenBy?: string
  readonly isOver: boolean
}

const stories: Readonly<Record<string, Story>> = {
  'three users are refreshed meanwhile': { refused: [0, 3, 6, 9, 12], isOver: true },
  'all of it happens within ten minutes': { refused: [0, 2, 4, 6, 9.9], isOver: false },
  'the others are refreshed with other credentials': { refused: [0, 3, 6, 9, 12], seenBy: 'new', isOver: false },
  'another session of the same user is one of the three': {
    refused: [0, 3, 6, 9, 12],
    others: ['a', 'b', 'x'],
    isOver: false
  },
  'another session of the same user is refreshed besides three users': {
    refused: [0, 3, 6, 9, 12],
    others: ['a', 'b', 'c', 'x'],
    isOver: true
  }
}

for (const [what, { refused, others = ['a', 'b', 'c'], seenBy = 'me', isOver }] of Object.entries(stories)) {
  test(`weak refusals ${isOver ? 'end' : 'do not end'} a session: ${what}`, t => {
    const evidence = createEvidence()
    let series: RefusalSeries | undefined
    const ends = refused.map((minute, index) => {
      if (index === refused.length - 1)
        for (const user of others)
          evidence.refreshed({ session: `of ${user}`, user }, seenBy, undefined, NOW + 4 * MINUTE)
      const previous = series?.last
      series = refusedAgain(series, NOW + minute * MINUTE)
      return evidence.refused(WEAK, { session: 'x', user: 'x' }, series, previous)
    })
    t.deepEqual(ends, [false, false, false, false, isOver])
  })
}

interface Event {
  readonly minutes: number
  readonly user: number
  readonly isRefused: boolean
  readonly code: string
  readonly seenBy: string
}

/** The decision in words, over the whole history, without the shortcuts of `createEvidence`. */
function isProvenBy(history: readonly (Event & { readonly at: number })[]): boolean {
  const { user, code, seenBy, at } = history.at(-1) as Event & { readonly at: number }
  const seriesOf = (index: number, same: (event: Event) => boolean) => {
    const before = history.slice(0, index)
    const who = history[index]?.user
    const start = before.findLastIndex(event => event.user === who && !event.isRefused) + 1
    return before.slice(start).filter(event => event.user === who && event.isRefused && same(event))
  }
  const own = [...seriesOf(history.length - 1, event => event.code === code && event.seenBy === seenBy), history.at(-1)]
  const since = own[0]?.at ?? at
  const successes = history.filter(event => !event.isRefused && event.at > since && event.seenBy === seenBy)
  const previous = own.at(-2)?.at ?? at
  return (
    own.length >= 5 &&
    at - since >= 10 * MINUTE &&
    new Set(successes.map(event => event.user).filter(other => other !== user)).size >= 3 &&
    !history.some(
      event =>
        event.user !== user && event.isRefused && event.code === code && event.at > Math.min(previous, at - 10 * MINUTE)
    ) &&
    !history.some(
      (event, index) =>
        !event.isRefused &&
        event.at > Math.min(since, at - DAY) &&
        seriesOf(index, refused => refused.code === code).length > 0
    )
  )
}

test('in any history, exactly the refusals end a session that the rule names', t => {
  const events = fc.array(
    fc.record({
      minutes: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 100 })),
      user: fc.oneof(
        { weight: 2, arbitrary: fc.constant(0) },
        { weight: 3, arbitrary: fc.integer({ min: 0, max: 4 }) }
      ),
      isLucky: fc.boolean(),
      code: fc.constantFrom('a', 'a', 'a', 'b')
    }),
    { minLength: 10, maxLength: 40 }
  )
  let ends = 0
  fc.assert(
    fc.property(events, fc.boolean(), fc.nat(60), (drawn, othersAreFine, rotation) => {
      const evidence = createEvidence()
      const cells = new Map<number, Record<string, RefusalSeries>>()
      const history: (Event & { at: number })[] = []
      let at = NOW
      for (const [index, { isLucky, minutes, ...drawnEvent }] of drawn.entries()) {
        // The credentials are replaced once.
        const event = { ...drawnEvent, seenBy: index < rotation ? 'one' : 'two' }
        at += minutes * MINUTE + 1
        const isRefused = event.user === 0 || (!othersAreFine && !isLucky)
        history.push({ ...event, minutes, isRefused, at })
        const by = { session: `${event.user}`, user: `${event.user}` }
        const cell = cells.get(event.user)
        if (!isRefused) {
          evidence.refreshed(by, event.seenBy, cell, at)
          cells.delete(event.user)
          continue
        }
        const series = `${event.seenBy} ${event.code}`
        const next = refusedAgain(cell?.[series], at)
        cells.set(event.user, { ...cell, [series]: next })
        const refusal = { meaning: 'weak', what: event.code, seenBy: event.seenBy, series } as const
        const isOver = evidence.refused(refusal, by, next, cell?.[series]?.last)
        if (isOver) ends++
        if (isOver !== isProvenBy(history)) return false
      }
      return true
    }),
    { numRuns: 3000 }
  )
  t.true(ends > 100, `${ends} ends`)
})

test('a rejected client counts once for each user and once for all logins, until a token request succeeds', t => {
  const evidence = createEvidence()
  for (const user of ['a', 'b', 'a']) evidence.clientRejected(user)
  t.is(evidence.clientRejections(), 2)
  for (let login = 0; login < 3; login++) evidence.clientRejected()
  t.is(evidence.clientRejections(), 3)
  evidence.refreshed({ session: 's', user: 'c' }, 'me', undefined, NOW)
  t.is(evidence.clientRejections(), 0)
  for (let user = 0; user < 200; user++) evidence.clientRejected(`${user}`)
  t.is(evidence.clientRejections(), 100)
  evidence.loggedIn()
  t.is(evidence.clientRejections(), 0)
})

test('the pause grows with each refusal, up to a minute', t => {
  t.deepEqual(
    [0, 1, 2, 3, 4, 5, 6, 7].map(refusals => pauseSecondsAfter(undefined, refusals)),
    [1, 2, 4, 8, 16, 32, 60, 60]
  )
  t.is(pauseSecondsAfter({ retryAfterSeconds: 20 }, 2), 20)
})
