import test from 'ava'
import { StoreUnavailableError } from '#src/sessions/cells.js'
import { setUpExpired, setUpRefresh } from './setup.js'

test('a change waits at most 5 seconds for the lease of a refresh in the same process, and does not share it', async t => {
  const { clock, record, refreshing, idp, live } = await setUpRefresh('single', { beforeExpirySeconds: 120 })
  clock.advanceSeconds(3540)
  const { waiting: refreshed, letGo } = await idp.hold(() => live(record))
  const began = clock.now()
  const changed = clock.runUntilSettled(refreshing.change(record, { theme: 'dark' }))
  await t.throwsAsync(changed, { instanceOf: StoreUnavailableError })
  t.true(clock.now() - began <= 5500, `waited for ${clock.now() - began} ms`)
  letGo()
  t.is((await refreshed).rev, 2)
  t.is((await refreshing.change(record, { ...record.fields, theme: 'dark' }))?.rev, 3)
})

test('a pause after a failed refresh does not stop a change, and stays after it', async t => {
  const { record, refreshing, idp, unavailable, refreshes } = await setUpExpired('single')
  idp.next(new TypeError('odd'))
  await unavailable(record)
  const changed = await refreshing.change(record, { ...record.fields, theme: 'dark' })
  t.like(changed, { rev: 2, fields: { theme: 'dark' } })
  await unavailable(record)
  t.is(refreshes(), 1)
})

test('a change whose lease was granted too late gives it back, so that a refresh gets it', async t => {
  const { addProcessWith, clock, record, live } = await setUpRefresh('single', { beforeExpirySeconds: 120 })
  clock.advanceSeconds(3540)
  const { refreshing, store } = addProcessWith(store => ({
    ...store,
    async acquire(...parameters) {
      const answer = await store.acquire(...parameters)
      clock.advance(1000)
      return answer
    }
  }))
  const changed = clock.runUntilSettled(refreshing.change(record, { theme: 'dark' }))
  await t.throwsAsync(changed, { instanceOf: StoreUnavailableError })
  await clock.runUntilSettled(store.saved())
  t.is((await live(record)).rev, 2)
})
