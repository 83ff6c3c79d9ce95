// The lists of the sessions of each user: in memory and in Redis they behave in the same way, and do not show who the user is.
import test, { type ExecutionContext } from 'ava'
import { createKeyring } from '#src/cookie/keyring.js'
import type { SessionRecord } from '#src/cookie/session-record.js'
import { StoreUnavailableError } from '#src/sessions/cells.js'
import type { Sessions } from '#src/sessions/create-sessions.js'
import { createMemoryValues } from '#src/sessions/memory-cells.js'
import { createUserSessions, type UserList, type UserSelector } from '#src/sessions/users/user-sessions.js'
import { createClock } from '../helpers/clock.js'
import { eventually } from '../helpers/eventually.js'
import { testWithRedis } from '../helpers/redis.js'
import { isOver, listed, recordOf, startPair, underLease } from './replicas.js'
import { createSharedStore } from './setup.js'

const ISS = 'https://idp.example'
const MAX_AGE_MS = 86_400_000

function sessionOf(id: string, sub: string, sid?: string, iat = 1000, authTime?: number): SessionRecord {
  const signedIn = { iat, ...(authTime !== undefined && { authTime }) }
  return { ...recordOf(id, 1), identity: { iss: ISS, sub, ...(sid !== undefined && { sid }), signedIn } }
}

function setUp() {
  const clock = createClock()
  const { sessions, disconnect, reconnect } = createSharedStore(clock).connect()
  const keyring = createKeyring(['the secret of the lists of this test'])
  const lists = createMemoryValues<UserList>(clock.now, 2 * MAX_AGE_MS)
  const usedTokens = createMemoryValues<true>(clock.now, 2 * MAX_AGE_MS)
  const names = createMemoryValues<readonly string[]>(clock.now, 2 * MAX_AGE_MS)
  const hasher = keyring.hasher('user sessions')
  const revoked: string[] = []
  const users = createUserSessions({
    lists,
    names,
    usedTokens,
    sessions,
    revoke: token => void revoked.push(token),
    hasher,
    clock,
    maxAgeMs: MAX_AGE_MS
  })
  return { clock, sessions, lists, names, usedTokens, keyring, hasher, users, revoked, disconnect, reconnect }
}

/** Stores the session of a new login, as a code exchange does. */
async function storeLogin(sessions: Sessions, record: SessionRecord): Promise<void> {
  const { id, key } = record
  await underLease({ sessions }, { id, rev: 0, key }, async () => ({ kind: 'tokens', record, pauseMs: 0 }))
}

type Users = ReturnType<typeof setUp>['users']

async function joinAll(t: ExecutionContext, users: Users): Promise<void> {
  for (const session of [
    sessionOf('a1', 'ada', 'login-1'),
    sessionOf('a2', 'ada', 'login-2'),
    sessionOf('a3', 'ada', 'login-2'),
    sessionOf('a4', 'ada'),
    sessionOf('g1', 'grace', 'login-3'),
    recordOf('nobody', 1)
  ])
    t.true(await users.join(session))
}

const named: readonly (readonly [of: { iss?: string; sid?: string; sub?: string }, ids: readonly string[]])[] = [
  [{ sub: 'ada' }, ['a1', 'a2', 'a3', 'a4']],
  [{ sid: 'login-2' }, ['a2', 'a3']],
  [{ sid: 'login-3', sub: 'grace' }, ['g1']],
  [{ sid: 'login-1', sub: 'ada' }, ['a1', 'a4']],
  [{ sub: 'login-1' }, []],
  [{ iss: 'https://other.example', sub: 'ada' }, []]
]

for (const [of, ids] of named) {
  test(`${JSON.stringify(of)} names ${ids.length} sessions; one without sid may belong to the login`, async t => {
    const { users, sessions } = setUp()
    await joinAll(t, users)
    t.deepEqual([...(await users.logOutAll({ iss: ISS, ...of })).ids].sort(), ids)
    for (const id of ids) t.true(isOver({ sessions }, id))
  })
}

test('a logout ends the sessions of users who signed in before, and logins in progress, and no later login', async t => {
  const { users } = setUp()
  await users.join(sessionOf('before', 'ada', undefined, 1999))
  await users.join(sessionOf('after', 'ada', undefined, 2001))
  t.deepEqual((await users.logOutAll({ iss: ISS, sub: 'ada' }, 2000)).ids, ['before'], 'a logout that arrives late')
  t.false(await users.join(sessionOf('in progress', 'ada', undefined, 1999)))
  t.true(await users.join(sessionOf('later', 'ada', undefined, 2001)))
  t.false(await users.join(sessionOf('same second', 'ada', undefined, 2000)), 'it cannot be known which came first')
  t.false(await users.join(sessionOf('single sign-on', 'ada', undefined, 2000, 1500)))
  t.true(await users.join(sessionOf('signed in again', 'ada', undefined, 2000, 2000)), 'the user has just signed in')
})

test('a logout of a login session at the provider also ends sessions that are newer than its token, but no newer session without sid', async t => {
  const { users } = setUp()
  await users.join(sessionOf('before', 'ada', 'login-1', 1999))
  await users.join(sessionOf('newer', 'ada', 'login-1', 2001))
  await users.join(sessionOf('other', 'ada', 'login-2', 1999))
  await users.join(sessionOf('old without sid', 'ada', undefined, 1999))
  await users.join(sessionOf('new without sid', 'ada', undefined, 2001))
  const { ids } = await users.logOutAll({ iss: ISS, sub: 'ada', sid: 'login-1' }, 2000)
  t.deepEqual([...ids].sort(), ['before', 'newer', 'old without sid'])
  t.false(await users.join(sessionOf('in progress', 'ada', 'login-1', 1999)))
  t.true(await users.join(sessionOf('later', 'ada', 'login-1', 2001)))
})

test('a logout resolves only when all logouts are stored, and the same call can be repeated', async t => {
  const { users, disconnect, reconnect } = setUp()
  await joinAll(t, users)
  disconnect()
  await t.throwsAsync(users.logOutAll({ iss: ISS, sub: 'ada' }, 2000), { message: /Redis is unavailable/ })
  await reconnect()
  t.is((await users.logOutAll({ iss: ISS, sub: 'ada' }, 2000)).ids.length, 4)
})

test('a full list first loses sessions that are over, and then the oldest one, which is logged out', async t => {
  const { users, sessions, lists, hasher } = setUp()
  for (let n = 0; n < 1000; n++) await users.join(sessionOf(`s${n}`, 'ada'))
  await sessions.end({ id: 's500' })
  t.true(await users.join(sessionOf('new', 'ada')))
  t.false(isOver({ sessions }, 's0'))
  t.true(await users.join(sessionOf('newer', 'ada')))
  t.true(isOver({ sessions }, 's0'))
  const list = await lists.read(hasher.newest(JSON.stringify(['sub', ISS, 'ada'])))
  t.is(list?.members.length, 1000)
})

test('a login reads only a few cells of a full list, and does not fail if they cannot be decrypted', async t => {
  const { sessions, lists, names, usedTokens, hasher, clock } = setUp()
  let reads = 0
  const read = async () => {
    reads++
    throw new StoreUnavailableError('unreadable')
  }
  const stored = { lists, names, usedTokens, hasher, clock, sessions: { ...sessions, read } }
  const users = createUserSessions({ ...stored, revoke: t.fail, maxAgeMs: MAX_AGE_MS })
  const members = Array.from({ length: 1000 }, (_, n) => ({ id: `s${n}`, signedIn: { iat: 1 }, joinedAt: clock.now() }))
  await lists.change(hasher.newest(JSON.stringify(['sub', ISS, 'ada'])), () => ({ result: 0, cell: { members } }))
  t.true(await users.join(sessionOf('new', 'ada')))
  t.is(reads, 32)
})

test('a session joins its lists again after a quarter of its lifetime', t => {
  const { users } = setUp()
  const session = { ...sessionOf('a', 'ada'), listedAt: 1000 }
  t.false(users.shouldJoin(session, 1000 + MAX_AGE_MS / 4))
  t.true(users.shouldJoin(session, 1001 + MAX_AGE_MS / 4))
  t.false(users.shouldJoin(recordOf('nobody', 1), MAX_AGE_MS))
})

test('if the provider has signed a user out, a session that joins in the background ends, and its refresh token is revoked', async t => {
  const { users, sessions, revoked } = setUp()
  const session = sessionOf('late', 'ada', 'login-1', 1999)
  await storeLogin(sessions, session)
  t.deepEqual((await users.logOutAll({ iss: ISS, sub: 'ada' }, 2000)).ids, [])
  users.joinAgain('late')
  await eventually(() => revoked.length > 0)
  t.true(isOver({ sessions }, 'late'))
  t.deepEqual(revoked, [session.fields.refresh_token])
})

test('a session that is logged out leaves its lists', async t => {
  const { users } = setUp()
  await joinAll(t, users)
  users.leave(sessionOf('a1', 'ada', 'login-1'))
  await eventually(async () => !(await users.logOutAll({ iss: ISS, sid: 'login-1' })).ids.includes('a1'))
  t.pass()
})

test('sessions are found after the secret was replaced, as long as the old secret is known', async t => {
  const { users, keyring } = setUp()
  await users.join(sessionOf('before', 'ada'))
  keyring.replace(['a new secret', 'the secret of the lists of this test'])
  await users.join(sessionOf('after', 'ada'))
  t.deepEqual([...(await users.logOutAll({ iss: ISS, sub: 'ada' })).ids].sort(), ['after', 'before'])
})

test('without the secret, nobody can compute the name of a list', t => {
  const [one, two] = [createKeyring(['a secret']), createKeyring(['another secret'])].map(keyring =>
    keyring.hasher('user sessions')
  )
  t.not(one?.newest('ada'), two?.newest('ada'))
  t.not(one?.newest('ada'), createKeyring(['a secret']).hasher('another purpose').newest('ada'))
})

test('a logout token is used once', async t => {
  const { users } = setUp()
  t.false(await users.isUsed('token'))
  await users.markUsed('token')
  t.true(await users.isUsed('token'))
  t.false(await users.isUsed('another token'))
})

testWithRedis('in Redis, the lists are encrypted, and a member that an attacker has added ends no process', async t => {
  const { redis, one, two } = await startPair(t, { settings: listed })
  await one.userSessions?.join(sessionOf('first-session', 'ada-lovelace', 'login-1'))
  const [key = ''] = await redis.admin.keys('*:user:*')
  const text = (await redis.admin.hget(key, 'e')) ?? ''
  // Short words can be in encrypted text by chance.
  t.notRegex(text, /first-session|lovelace|members/)
  for (const name of await redis.admin.keys('*:user:*')) await redis.admin.hset(name, 'e', `${text}A`)
  await t.throwsAsync(two.userSessions?.logOutAll({ iss: ISS, sub: 'ada-lovelace' }) ?? Promise.resolve(), {
    message: /cannot be read/
  })
  t.true(
    await one.userSessions?.join(sessionOf('second-session', 'ada-lovelace', 'login-2')),
    'an unreadable list does not stop a login'
  )
})

testWithRedis('a session that was listed by one replica is logged out by another, and both know it', async t => {
  const { one, two } = await startPair(t, { settings: listed })
  await one.userSessions?.join(sessionOf('a1', 'ada', 'login-1'))
  t.deepEqual((await two.userSessions?.logOutAll({ iss: ISS, sub: 'ada' }, 1000))?.ids, ['a1'])
  await eventually(() => isOver(one, 'a1'))
  t.false(await one.userSessions?.join(sessionOf('a2', 'ada', 'login-1', 999)))
})

testWithRedis('sessions whose records only their cookies can decrypt also make room in a full list', async t => {
  const { one, two } = await startPair(t, { settings: listed })
  for (const id of ['live', 'over'])
    await storeLogin(one.sessions, { ...recordOf(id, 1), key: 'the key in the cookie of this session' })
  await one.sessions.end({ id: 'over' })
  const { clock, lists, usedTokens, names, hasher } = setUp()
  const stored = { lists, usedTokens, names, sessions: two.sessions }
  const users = createUserSessions({ ...stored, revoke() {}, hasher, clock, maxAgeMs: MAX_AGE_MS })
  const list = hasher.newest(JSON.stringify(['sub', ISS, 'ada']))
  const ids = ['live', 'over', ...Array.from({ length: 998 }, (_, n) => `missing ${n}`)]
  const members = ids.map(id => ({ id, signedIn: { iat: 1000 }, joinedAt: clock.now() }))
  await lists.change(list, () => ({ result: undefined, cell: { members } }))
  t.true(await users.join(sessionOf('new', 'ada')))
  const left = (await lists.read(list))?.members.map(({ id }) => id) ?? []
  t.deepEqual([left.length, left[0], left.at(-1)], [1000, 'live', 'new'])
})

test('a user is found by the sub and by each name, in any case, until the session has expired', async t => {
  const { users, sessions, clock, keyring } = setUp()
  const times = { loggedInAt: clock.now(), issuedAt: clock.now() }
  const ada = { ...sessionOf('a1', 'ada-1'), ...times }
  for (const session of [ada, { ...sessionOf('a2', 'ada-2'), ...times }]) {
    await storeLogin(sessions, session)
    await users.join(session)
  }
  const claims = { email: 'Ada@Example.com', preferred_username: 'ada', given_name: 'Ada', family_name: 'Lovelace' }
  users.addNames(ada.identity, claims)
  users.addNames(sessionOf('a2', 'ada-2').identity, { name: 'ADA', email: 7, preferred_username: 'ada-1' })
  const subsOf = async (value: string, iss = ISS, by: UserSelector['by'] = 'any') =>
    (await users.listed(iss, { by, value })).map(({ sub }) => sub)
  await eventually(async () => (await subsOf('ada')).length === 2)
  for (const name of ['ada-1', 'ada@example.com', ' ADA@example.com', 'ada lovelace'])
    t.deepEqual(await subsOf(name), ['ada-1'])
  t.deepEqual(await subsOf('ada', 'https://other.example'), [])
  const selected = [
    ['sub', 'ada-1', ['ada-1']],
    ['sub', 'ada', []],
    ['sub', 'ADA-1', []],
    ['name', 'ada-1', ['ada-2']],
    ['name', 'ada@example.com', ['ada-1']],
    ['email', 'ADA@example.com', ['ada-1']],
    ['email', 'ada', []]
  ] as const
  for (const [by, value, subs] of selected) t.deepEqual(await subsOf(value, ISS, by), subs, `${by} ${value}`)
  keyring.replace(['a new secret', 'the secret of the lists of this test'])
  t.deepEqual(await subsOf('ada lovelace'), ['ada-1'])
  t.deepEqual((await users.listed(ISS, { by: 'sub', value: 'ada-1' }))[0]?.sessions, [
    { loggedInAt: times.loggedInAt, writtenBy: times.issuedAt }
  ])
  clock.advance(MAX_AGE_MS)
  t.deepEqual(await subsOf('ada-1'), [], 'its cookie has expired')
})
