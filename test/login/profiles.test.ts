import test from 'ava'
import { createProfiles } from '#src/login/profiles.js'
import type { UserInfo } from '#src/provider/client.js'
import { createClock } from '../helpers/clock.js'
import { createFakeIdp, upstreamError } from '../modes/fake-idp.js'

/** The user info of each call contains the access token of that call, unless a test sets another answer. */
function setUp(keepSeconds: number) {
  const clock = createClock()
  const asked: string[] = []
  const subjects: (string | undefined)[] = []
  const answers: (() => Promise<UserInfo>)[] = []
  const profiles = createProfiles({
    now: clock.now,
    keepSeconds,
    idp: {
      metadata: createFakeIdp().metadata,
      userInfo: (accessToken, subject) => {
        asked.push(accessToken)
        subjects.push(subject)
        return (answers.shift() ?? (async () => ({ name: accessToken })))()
      }
    },
    mode: { displayName: ({ name }) => String(name) }
  })
  return { profiles, clock, asked, subjects, answers }
}

test('with a cache time of 0 every request calls the provider', async t => {
  const { profiles, asked } = setUp(0)
  t.is(await profiles.displayName({ id: 'session' }, 'a'), 'a')
  t.is(await profiles.displayName({ id: 'session' }, 'b'), 'b')
  t.deepEqual(asked, ['a', 'b'])
})

test('a cached name is reused for the same session until the cache time is over, even with a refreshed access token', async t => {
  const { profiles, clock, asked } = setUp(30)
  t.is(await profiles.displayName({ id: 'session' }, 'a'), 'a')
  clock.advance(29_999)
  t.is(await profiles.displayName({ id: 'session' }, 'b'), 'a')
  clock.advance(1)
  t.is(await profiles.displayName({ id: 'session' }, 'b'), 'b')
  t.deepEqual(asked, ['a', 'b'])
})

test('a cached name is never used for another session', async t => {
  const { profiles, asked } = setUp(30)
  t.is(await profiles.displayName({ id: 'one' }, 'a'), 'a')
  t.is(await profiles.displayName({ id: 'two' }, 'b'), 'b')
  t.is(await profiles.displayName({ id: 'one' }, 'c'), 'a')
  t.deepEqual(asked, ['a', 'b'])
})

test('simultaneous requests of one session share one call to the provider, and all of them get its error', async t => {
  const { profiles, asked, answers } = setUp(30)
  t.deepEqual(await Promise.all(['a', 'a', 'a'].map(token => profiles.displayName({ id: 'session' }, token))), [
    'a',
    'a',
    'a'
  ])
  t.is(asked.length, 1)
  const error = upstreamError()
  answers.push(() => Promise.reject(error))
  const both = await Promise.allSettled([
    profiles.displayName({ id: 'other' }, 'a'),
    profiles.displayName({ id: 'other' }, 'a')
  ])
  t.deepEqual(both, [
    { status: 'rejected', reason: error },
    { status: 'rejected', reason: error }
  ])
  t.is(asked.length, 2)
})

test('an error is not cached', async t => {
  const { profiles, answers } = setUp(30)
  answers.push(() => Promise.reject(upstreamError()))
  await t.throwsAsync(profiles.displayName({ id: 'session' }, 'a'))
  t.is(await profiles.displayName({ id: 'session' }, 'a'), 'a')
})

test('after a cached name was removed, the next request calls the provider, even if an earlier call is still in progress', async t => {
  const { profiles, asked, answers } = setUp(30)
  let answer = (_: UserInfo) => {}
  const pending = new Promise<UserInfo>(resolve => {
    answer = resolve
  })
  answers.push(() => pending)
  const first = profiles.displayName({ id: 'session' }, 'a')
  profiles.forget('session')
  answer({ name: 'late' })
  t.is(await first, 'late')
  t.is(await profiles.displayName({ id: 'session' }, 'b'), 'b')
  t.deepEqual(asked, ['a', 'b'])
})

test('a call that fails late does not remove a name that a later call has cached', async t => {
  const { profiles, asked, answers } = setUp(30)
  let fail = (_: Error) => {}
  answers.push(
    () =>
      new Promise<UserInfo>((_, reject) => {
        fail = reject
      })
  )
  const first = profiles.displayName({ id: 'session' }, 'a')
  profiles.forget('session')
  await profiles.displayName({ id: 'session' }, 'b')
  fail(upstreamError())
  await t.throwsAsync(first)
  t.is(await profiles.displayName({ id: 'session' }, 'c'), 'b')
  t.deepEqual(asked, ['a', 'b'])
})

test('the user info of a session must be about the person who signed in', async t => {
  const { profiles, subjects } = setUp(0)
  await profiles.displayName({ id: 'one', identity: { iss: 'https://idp.example', sub: 'user-1' } }, 'a')
  await profiles.displayName({ id: 'two' }, 'a')
  t.deepEqual(subjects, ['user-1', undefined])
})

test('when the cache of names is full, the oldest name is dropped', async t => {
  const { profiles, asked } = setUp(3600)
  await profiles.displayName({ id: 'first' }, 'a')
  for (let index = 0; index < 10_000; index++) await profiles.displayName({ id: `session ${index}` }, 'a')
  await profiles.displayName({ id: 'first' }, 'a')
  t.is(asked.length, 10_002)
})
