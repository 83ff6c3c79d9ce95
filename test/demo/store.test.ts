import test from 'ava'
import { createStore } from '#src/demo/provider.js'
import { createClock } from '../helpers/clock.js'

const hour = 3600

test('if a table is full, the record written longest ago is evicted, and a used record is kept like any other', async t => {
  const tokens = createStore({ now: createClock().now, maxRecords: 3 })('RefreshToken')
  for (const id of ['a', 'b', 'c']) await tokens.upsert(id, { grantId: id }, hour)
  await tokens.upsert('a', { grantId: 'a' }, hour)
  await tokens.consume('c')
  await tokens.upsert('d', { grantId: 'd' }, hour)
  t.is(await tokens.find('b'), undefined, 'b was written longest ago')
  for (const id of ['a', 'c', 'd']) t.is(Boolean((await tokens.find(id))?.consumed), id === 'c', id)
  await tokens.revokeByGrantId('c')
  t.is(await tokens.find('c'), undefined)
})
