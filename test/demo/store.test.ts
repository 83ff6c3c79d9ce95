import test from 'ava'
import { createStore } from '#src/demo/provider.js'
import { createClock } from '../helpers/clock.js'

const hour = 3600

function createTokens(maxRecords?: number) {
  const clock = createClock()
  const tokens = createStore({ now: clock.now, ...(maxRecords === undefined ? {} : { maxRecords }) })('RefreshToken')
  return { clock, tokens }
}

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
