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
  const oauth = (status: number, error: string) =>
    new OAuthError({ error, status, endpoint: 'token', retryAfterSeconds: undefined })
  const without = new ProviderError('token', 'invalid_response', 'a page', { status: 403, meaning: 'weak' })
  t.like(refusalIn(oauth(403, 'unauthorized_client'), 'me'), { series: 'me 403 unauthorized_client' })
  t.like(refusalIn(without, 'me'), { series: 'me 403 ' })
  t.like(refusalIn(oauth(400, 'invalid_request'), 'me'), { meaning: 'ambiguous', series: 'ambiguous' })
  for (const error of [oauth(400, 'invalid_grant'), oauth(404, 'invalid_client'), new Error('a fault')]) {
    t.is(refusalIn(error, 'me'), undefined)
  }
})

const WEAK = refusalIn(
  new OAuthError({ error: 'unauthorized_client', status: 403, endpoint: 'token', retryAfterSeconds: undefined }),
  'me'
) as SeenRefusal

/** Replays a story of minutes in which users are refreshed or refused. Returns whether the last event proves something. */
function replay(
  events: readonly (readonly [minute: number, user: string, seenBy?: string])[],
  refused: string
): boolean {
  const evidence = createEvidence()
  const series = new Map<string, RefusalSeries>()
  let isOver = false
  for (const [minute, user, seenBy = 'me'] of events) {
    const by = { session: user, user }
    const at = NOW + minute * MINUTE
    const name = `${seenBy} ${WEAK.what}`
    const earlier = series.get(user)
    if (refused.includes(user)) {
      const next = refusedAgain(earlier, at)
      series.set(user, next)
      isOver = evidence.refused({ ...WEAK, seenBy, series: name }, by, next, earlier?.last)
    } else {
      evidence.refreshed(by, seenBy, earlier && { [name]: earlier }, at)
    }
  }
  return isOver
}

const dead = [0, 3, 6, 9].map(minute => [minute, 'x'] as const)
const last = [12, 'x'] as const
const others = ['a', 'b', 'c'].map(user => [4, user] as const)

const stories: readonly (readonly [string, Parameters<typeof replay>[0], boolean, refused?: string])[] = [
  ['one dead token while three users are refreshed', [...dead, ...others, last], true],
  ['the page asks once an hour', [...[0, 60, 120, 180].map(m => [m, 'x'] as const), ...others, [240, 'x']], true],
  ['one user is refreshed three times', [...dead, [4, 'a'], [5, 'a'], [7, 'a'], last], false],
  ['the other users were refreshed before', [...others.map(([, u]) => [-1, u] as const), ...dead, last], false],
  [
    'the others are refreshed with other credentials',
    [...dead, ...others.map(([m, u]) => [m, u, 'new'] as const), last],
    false
  ],
  ['a firewall refuses a second user', [...dead, ...others, [11, 'y'], last], false, 'xy'],
  [
    'a second user is refused once an hour, in between',
    [...[0, 60, 120, 180].map(m => [m, 'x'] as const), ...others, [200, 'y'], [240, 'x']],
    false,
    'xy'
  ],
  ['a second user was refused long ago', [[-30, 'y'], ...dead, ...others, last], true, 'xy']
]
for (const [what, events, expected, refused = 'x'] of stories) {
  test(`weak refusals ${expected ? 'end' : 'do not end'} a session: ${what}`, t => {
    t.is(
      replay(
        [...events].sort(([a], [b]) => a - b),
        refused
      ),
      expected
    )
  })
}

test('weak refusals do not end a session if another session, refused in the same way, has been refreshed since', t => {
  const evidence = createEvidence()
  const by = (user: string) => ({ session: user, user })
  const once = refusedAgain(undefined, NOW)
  evidence.refused(WEAK, by('y'), once)
  for (const user of ['a', 'b', 'c']) evidence.refreshed(by(user), 'me', undefined, NOW + MINUTE)
  const series = { since: NOW, last: NOW + 30 * MINUTE, refusals: 9 }
  t.true(evidence.refused(WEAK, by('x'), series))
  evidence.refreshed(by('y'), 'me', { 'other 403 unauthorized_client': once }, NOW + 31 * MINUTE)
  t.false(evidence.refused(WEAK, by('x'), { ...series, last: NOW + 60 * MINUTE }))
})

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
