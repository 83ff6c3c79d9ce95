import test from 'ava'
import { createStore } from '#src/demo/provider.js'
import { createClock } from '../helpers/clock.js'

const hour = 3600

function createTokens(maxRecords?: number) {
  const clock = createClock()
  const tokens = createStore({ now: clock.now, ...(maxRecords === undefined ? {} : { maxRecords }) })('RefreshToken')
  return { clock, tokens }
}

test('a consumed record gets the time of its use, keeps its expiry time and can be destroyed', async t => {
  const { clock, tokens } = createTokens()
  await tokens.upsert('one', { accountId: 'ada' }, hour)
  clock.advanceSeconds(10)
  await tokens.consume('one')
  t.deepEqual(await tokens.find('one'), { accountId: 'ada', consumed: Math.floor(clock.now() / 1000) } as object)
  clock.advanceSeconds(hour - 10)
  t.is(await tokens.find('one'), undefined)

  await tokens.upsert('two', {}, hour)
  await tokens.consume('two')
  await tokens.destroy('two')
  await tokens.consume('two')
  t.is(await tokens.find('two'), undefined)
})

test('a session is found by its uid, even after its id has changed', async t => {
  const { tokens: sessions } = createTokens()
  await sessions.upsert('old', { uid: 'same', loginTs: 1 }, hour)
  await sessions.upsert('new', { uid: 'same', loginTs: 2 }, hour)
  await sessions.destroy('old')
  t.like(await sessions.findByUid('same'), { loginTs: 2 })
  await sessions.destroy('new')
  t.is(await sessions.findByUid('same'), undefined)
})

test('if a table is full, the record written longest ago is evicted', async t => {
  const { tokens } = createTokens(3)
  for (const id of ['a', 'b', 'c']) await tokens.upsert(id, {}, hour)
  await tokens.upsert('a', { loginTs: 1 }, hour)
  await tokens.upsert('d', {}, hour)
  t.is(await tokens.find('b'), undefined, 'b was written longest ago')
  for (const id of ['a', 'c', 'd']) t.truthy(await tokens.find(id), id)
})

test('a hundred thousand rotations of one session neither fill the store nor evict the token of another session', async t => {
  const { tokens } = createTokens(1000)
  await tokens.upsert('quiet', { grantId: 'quiet' }, hour)
  const rotations = 100_000
  for (let index = 0; index < rotations; index++) {
    await tokens.upsert(`busy-${index}`, { grantId: 'busy' }, hour)
    await tokens.consume(`busy-${index}`)
  }
  t.truthy(await tokens.find('quiet'))
  t.is(await tokens.find(`busy-${rotations - 1001}`), undefined, 'the thousandth last token has been removed')
  t.truthy(await tokens.find(`busy-${rotations - 1000}`), 'the newest thousand tokens are still known')
  await tokens.revokeByGrantId('busy')
  t.is(await tokens.find(`busy-${rotations - 1}`), undefined)
  t.truthy(await tokens.find('quiet'))
})
