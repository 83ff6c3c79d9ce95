import test from 'ava'
import type { SessionRecord } from '#src/cookie/session-record.js'
import { StoreUnavailableError } from '#src/sessions/cells.js'
import { setUpExpired, setUpRefresh } from './setup.js'

/** Only a change of a session that is kept in Redis needs the lease. */
function inRedis(record: SessionRecord): SessionRecord {
  return { ...record, key: 'the key in its cookie' }
}

test('a change waits at most 5 seconds for the lease of a refresh in the same process, and does not share it', async t => {
  const { clock, record, sessions, idp, live } = await setUpRefresh('single', { beforeExpirySeconds: 120 })
  clock.advanceSeconds(3540)
  const { waiting: refreshed, letGo } = await idp.hold(() => live(record))
  const began = clock.now()
  const changed = clock.runUntilSettled(sessions.change(inRedis(record), { theme: 'dark' }))
  await t.throwsAsync(changed, { instanceOf: StoreUnavailableError })
  t.true(clock.now() - began <= 5500, `waited for ${clock.now() - began} ms`)
  letGo()
  t.is((await refreshed).rev, 2)
  t.is((await sessions.change(inRedis(record), { ...record.fields, theme: 'dark' }))?.rev, 3)
})

test('a pause after a failed refresh does not stop a change, and stays after it', async t => {
  const { record, sessions, idp, unavailable, refreshes } = await setUpExpired('single')
  idp.next(new TypeError('odd'))
  await unavailable(record)
  const changed = await sessions.change(inRedis(record), { ...record.fields, theme: 'dark' })
  t.like(changed, { rev: 2, fields: { theme: 'dark' } })
  await unavailable(record)
  t.is(refreshes(), 1)
})

test('a change whose lease was granted too late gives it back, so that a refresh gets it', async t => {
  const { addProcessWith, clock, record, live } = await setUpRefresh('single', { beforeExpirySeconds: 120 })
  clock.advanceSeconds(3540)
  const { sessions } = addProcessWith({
    cells: cells => ({
      ...cells,
      async swap(...parameters) {
        const swapped = await cells.swap(...parameters)
        clock.advance(1000)
        return swapped
      }
    })
  })
  const changed = clock.runUntilSettled(sessions.change(inRedis(record), { theme: 'dark' }))
  await t.throwsAsync(changed, { instanceOf: StoreUnavailableError })
  await clock.runUntilSettled(sessions.saved())
  t.is((await live(record)).rev, 2)
})
