import test from 'ava'
import { StoreUnavailableError } from '#src/store/unavailable.js'
import { setUpRefresh } from './setup.js'

test('a change that may not use its lock gives the lock back', async t => {
  const { addProcessWith, clock, record, live } = await setUpRefresh('single', { marginSeconds: 120 })
  clock.advanceSeconds(3540)
  const { refreshing } = addProcessWith(store => ({ ...store, mayUse: async () => false }))
  const changed = clock.runUntilSettled(refreshing.change(record, { theme: 'dark' }))
  await t.throwsAsync(changed, { instanceOf: StoreUnavailableError })
  t.is((await live(record)).rev, 2)
})

test('a change that cannot give its lock back uses it when it may', async t => {
  const { addProcessWith, clock, record } = await setUpRefresh('single')
  let asked = 0
  const { refreshing } = addProcessWith(store => ({
    ...store,
    mayUse: async lock => asked++ > 0 && store.mayUse(lock),
    save: async () => ({ kind: 'unknown' })
  }))
  const changed = await clock.runUntilSettled(refreshing.change(record, { ...record.fields, theme: 'dark' }))
  t.is(changed?.rev, 2)
})
