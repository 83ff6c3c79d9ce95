// The index of the sessions of a person: its lists in memory and in Redis behave in the same way, expire with the sessions,
// and do not show who the person is.
import test, { type ExecutionContext } from 'ava'
import { createKeyring } from '#src/session/keyring.js'
import type { SessionRecord } from '#src/session/record.js'
import { createMemoryIndexScripts, createRedisIndexScripts } from '#src/store/index-scripts.js'
import type { RedisCommands } from '#src/store/redis-client.js'
import type { SendCommand } from '#src/store/script-runner.js'
import { createSessionIndex, type SessionIndex } from '#src/store/session-index.js'
import { createClock } from '../helpers/clock.js'
import { eventually } from '../helpers/eventually.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { connected, isAway, lockOf, logIn, recordOf, save, startReplica, startReplicas } from './replicas.js'

const ISS = 'https://idp.example'
const TIMES = { entryMs: 172_800_000, loginMs: 900_000 }

function sessionOf(id: string, sub: string, sid?: string): SessionRecord {
  return { ...recordOf(id, 1), identity: { iss: ISS, sub, ...(sid !== undefined && { sid }) } }
}

/** The rules that both implementations keep. */
async function checkRules(t: ExecutionContext, index: SessionIndex): Promise<void> {
  const find = async (of: { sid?: string; sub?: string }, issuedAt?: number) =>
    [...(await index.find({ iss: ISS, ...of }, issuedAt))].sort()
  for (const session of [
    sessionOf('a1', 'ada', 'login-1'),
    sessionOf('a2', 'ada', 'login-2'),
    sessionOf('a3', 'ada', 'login-2'),
    sessionOf('a4', 'ada'),
    sessionOf('g1', 'grace', 'login-3'),
    recordOf('nobody', 1)
  ])
    t.true(await index.join(session, 1000))
  t.deepEqual(await find({ sub: 'ada' }), ['a1', 'a2', 'a3', 'a4'])
  t.deepEqual(await find({ sid: 'login-2' }), ['a2', 'a3'])
  t.deepEqual(await find({ sid: 'login-3', sub: 'grace' }), ['g1'])
  t.deepEqual(await find({ sid: 'login-1', sub: 'ada' }), ['a1', 'a4'], 'a session without sid may be of this login')
  t.deepEqual(await find({ sub: 'login-1' }), [])
  t.deepEqual(await index.find({ iss: 'https://other.example', sub: 'ada' }, undefined), [])

  await index.leave({ iss: ISS, sub: 'ada' }, ['a2', 'a4', 'unknown'])
  t.deepEqual(await find({ sub: 'ada' }), ['a1', 'a3'])
  await index.leave({ iss: ISS, sub: 'ada' }, [])

  t.deepEqual(await find({ sid: 'login-3' }, 2000), ['g1'])
  t.false(await index.join(sessionOf('g2', 'grace', 'login-3'), 2000), 'the login was in progress')
  t.deepEqual(await find({ sub: 'grace' }), ['g1'])
  t.true(await index.join(sessionOf('g3', 'grace', 'login-4'), 2000), 'another login session goes on')
  t.true(await index.join(sessionOf('g4', 'grace', 'login-3'), 2001), 'a later login is accepted')
  t.true(await index.join(sessionOf('g1', 'grace', 'login-3'), undefined), 'a refresh is not a login')
  t.deepEqual(await find({ sid: 'login-3' }, 1500), ['g1', 'g4'])
  t.false(await index.join(sessionOf('g5', 'grace', 'login-3'), 1900), 'the newest logout counts')

  t.true(await index.claim('token', 60_000))
  t.false(await index.claim('token', 60_000))
  t.true(await index.claim('another token', 60_000))
  await index.release('token')
  t.true(await index.claim('token', 60_000))
  await index.release('token')
  await index.keepClaim('token', 60_000)
  t.false(await index.claim('token', 60_000))
}

test('the index in memory finds sessions by sid and sub', async t => {
  await checkRules(t, createSessionIndex(createMemoryIndexScripts(Date.now, TIMES), createKeyring(['a secret'])))
})

testWithRedis('the index in Redis finds sessions by sid and sub', async t => {
  const { admin } = await startRedis(t)
  const send: SendCommand = command => command(admin as unknown as RedisCommands)
  const scripts = createRedisIndexScripts(send, 'platform-auth:test:', TIMES)
  await checkRules(t, createSessionIndex(scripts, createKeyring(['a secret'])))
  const keys = await admin.keys('*')
  t.true(keys.length > 5)
  for (const key of keys) {
    t.regex(key, /^platform-auth:test:(sessions|logout-token):\{[\w-]{43}\}(:out)?$/)
    const left = await admin.pttl(key)
    t.true(left > 0 && left <= (key.includes('token') ? 60_000 : key.endsWith(':out') ? TIMES.loginMs : TIMES.entryMs))
  }
})

test('without the secret, nobody can compute the name of a list', async t => {
  const [one, two] = [createKeyring(['a secret']), createKeyring(['another secret'])].map(keyring =>
    keyring.hasher('session index')
  )
  t.not(one?.newest('ada'), two?.newest('ada'))
  t.not(one?.newest('ada'), createKeyring(['a secret']).hasher('another purpose').newest('ada'))
})

test('sessions are found after the secret was replaced, as long as the old secret is known', async t => {
  const keyring = createKeyring(['old'])
  const index = createSessionIndex(createMemoryIndexScripts(Date.now, TIMES), keyring)
  await index.join(sessionOf('before', 'ada'), 1)
  keyring.replace(['new', 'old'])
  await index.join(sessionOf('after', 'ada'), 1)
  t.deepEqual([...(await index.find({ iss: ISS, sub: 'ada' }, undefined))].sort(), ['after', 'before'])
  keyring.replace(['new'])
  t.deepEqual(await index.find({ iss: ISS, sub: 'ada' }, undefined), ['after'])
})

test('a session leaves the list when its entry expires, and a refresh renews its time', async t => {
  const clock = createClock()
  const index = createSessionIndex(createMemoryIndexScripts(clock.now, TIMES), createKeyring(['a secret']))
  await index.join(sessionOf('idle', 'ada'), 1)
  await index.join(sessionOf('active', 'ada'), 1)
  clock.advance(TIMES.entryMs - 1)
  await index.join(sessionOf('active', 'ada'), undefined)
  clock.advance(1)
  t.deepEqual(await index.find({ iss: ISS, sub: 'ada' }, undefined), ['active'])
  clock.advance(TIMES.entryMs)
  t.deepEqual(await index.find({ iss: ISS, sub: 'ada' }, undefined), [])
})

const ada = { iss: ISS, sub: 'ada' }
const times = { settleMs: 0 }
const options = { keepsIndex: true, times }

testWithRedis('a session whose login ends while it is stored gets no place in the store', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, options)
  await connected(one, two)
  const lock = await lockOf(one, { id: 'id', rev: 0 })
  t.deepEqual(await two.logOutAll(ada, 1000), [])
  const record = sessionOf('id', 'ada')
  const outcome = { kind: 'tokens', record, keepsLock: false, pauseMs: 0, issuedAt: 1000 } as const
  t.is((await one.save(lock, outcome)).kind, 'out')
  t.is((await two.look(record)).kind, 'out')
})

testWithRedis('on a full Redis, a logout token still ends the sessions of a person', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, options)
  await connected(one, two)
  const record = sessionOf('id', 'ada')
  await save(one, await lockOf(one, { id: 'id', rev: 0 }), record)
  await redis.admin.config('SET', 'maxmemory', '1')
  t.true(await two.claim('token', 60_000))
  t.false(await one.claim('token', 60_000))
  t.deepEqual(
    (await two.logOutAll(ada, 1000)).map(({ id }) => id),
    ['id']
  )
  t.is((await one.look(record)).kind, 'out')
})

testWithRedis('while Redis is away, the sessions of a person cannot be found, and none is ended', async t => {
  const redis = await startRedis(t)
  const one = await startReplica(t, redis.url, { ...options, isImpatient: true })
  const record = { ...(await logIn(one, 'id')), identity: ada }
  await redis.kill()
  await eventually(() => isAway(one))
  for (const action of [() => one.logOutAll(ada, 1), () => one.claim('token', 1000)])
    await t.throwsAsync(action, { name: 'StoreUnavailableError' })
  t.false(one.isLoggedOut(record.id))
})

testWithRedis('after Redis has lost its data, the index has the recent sessions again', async t => {
  const redis = await startRedis(t)
  const [one, two] = await startReplicas(t, redis.url, options)
  await connected(one, two)
  for (const id of ['recent', 'older']) await save(one, await lockOf(one, { id, rev: 0 }), sessionOf(id, 'ada'))
  await redis.restart()
  // The first process stores the sessions again that it remembers. A request brings back any other session.
  const ids = ['recent', 'older', 'from-a-cookie']
  await eventually(async () => {
    await two.look(sessionOf('from-a-cookie', 'ada'))
    await two.logOutAll(ada).catch(() => {})
    return ids.every(id => two.isLoggedOut(id))
  })
  t.pass()
})
