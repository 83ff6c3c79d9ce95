import test from 'ava'
import { createProfiles } from '#src/login/profiles.js'
import type { UserInfo } from '#src/provider/id-token.js'
import { createClock } from '../helpers/clock.js'
import { createDeferred } from '../helpers/deferred.js'
import { upstreamError } from './fake-idp.js'

/** The user info of each call contains the access token of that call, unless a test sets another response. */
function setUp(cacheTtlSeconds: number) {
  const clock = createClock()
  const asked: string[] = []
  const subjects: (string | undefined)[] = []
  const answers: (() => Promise<UserInfo>)[] = []
  const profiles = createProfiles({
    now: clock.now,
    cacheTtlSeconds,
    idp: {
      endpoint: async () => 'https://idp.example/userinfo' as never,
      userInfo: (accessToken, subject) => {
        asked.push(accessToken)
        subjects.push(subject)
        return (answers.shift() ?? (async () => ({ name: accessToken })))()
      }
    },
    mode: { displayName: ({ name }) => String(name) }
  })
  const nameOf = (id: string, accessToken: string) => profiles.displayName({ id }, accessToken)
  return { profiles, clock, asked, subjects, answers, nameOf }
}

test('with a cache time of 0 every request calls the provider', async t => {
  const { nameOf, asked } = setUp(0)
  t.is(await nameOf('session', 'a'), 'a')
  t.is(await nameOf('session', 'b'), 'b')
  t.deepEqual(asked, ['a', 'b'])
})

test('a cached name is reused for its session until the cache time is over, even with a refreshed access token, and for no other one', async t => {
  const { nameOf, clock, asked } = setUp(30)
  t.is(await nameOf('one', 'a'), 'a')
  t.is(await nameOf('two', 'b'), 'b')
  clock.advance(29_999)
  t.is(await nameOf('one', 'c'), 'a')
  clock.advance(1)
  t.is(await nameOf('one', 'c'), 'c')
  t.deepEqual(asked, ['a', 'b', 'c'])
})

test('simultaneous requests of one session share one call to the provider, and all of them get its error, which is not cached', async t => {
  const { nameOf, asked, answers } = setUp(30)
  const names = await Promise.all([nameOf('session', 'a'), nameOf('session', 'a'), nameOf('session', 'a')])
  t.deepEqual(names, ['a', 'a', 'a'])
  t.is(asked.length, 1)
  const error = upstreamError()
  answers.push(() => Promise.reject(error))
  for (const failure of [nameOf('other', 'a'), nameOf('other', 'a')].map(name => t.throwsAsync(name)))
    t.is(await failure, error)
  t.is(asked.length, 2)
  t.is(await nameOf('other', 'a'), 'a', 'an error is not cached')
})

test('after a cached name was removed, the next request calls the provider, even if an earlier call is still in progress', async t => {
  const { profiles, nameOf, asked, answers } = setUp(30)
  const [pending, answer] = createDeferred<UserInfo>()
  answers.push(() => pending)
  const first = nameOf('session', 'a')
  profiles.forget('session')
  answer({ name: 'late' })
  t.is(await first, 'late')
  t.is(await nameOf('session', 'b'), 'b')
  t.deepEqual(asked, ['a', 'b'])
})

test('a call that fails late does not remove a name that a later call has cached', async t => {
  const { profiles, nameOf, asked, answers } = setUp(30)
  const [pending, fail] = createDeferred()
  answers.push(() => pending.then(() => Promise.reject(upstreamError())))
  const first = nameOf('session', 'a')
  profiles.forget('session')
  await nameOf('session', 'b')
  fail()
  await t.throwsAsync(first)
  t.is(await nameOf('session', 'c'), 'b')
  t.deepEqual(asked, ['a', 'b'])
})

test('the user info of a session must be about the user who signed in', async t => {
  const { profiles, nameOf, subjects } = setUp(0)
  await profiles.displayName({ id: 'one', identity: { iss: 'https://idp.example', sub: 'user-1' } }, 'a')
  await nameOf('two', 'a')
  t.deepEqual(subjects, ['user-1', undefined])
})
