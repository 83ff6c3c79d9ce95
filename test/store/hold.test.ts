// A process that was stopped confirms its lock before it sends a token. Meanwhile the store may have lost the lock, and another
// process may have used the token.
import test from 'ava'
import { createMemoryScripts, createMemoryStorage } from '#src/store/memory-scripts.js'
import { createClock } from '../helpers/clock.js'

const LOCK_MS = 65_000
const times = { entryMs: 86_400_000, loginMs: 900_000, keepMs: 60_000, lockMs: LOCK_MS, settleMs: 2000 }

function createStore() {
  const clock = createClock()
  const storage = createMemoryStorage<string>(clock.now, times)
  const scripts = createMemoryScripts(clock.now, times, storage)
  return { clock, storage, scripts }
}

async function takeLock({ clock, scripts }: ReturnType<typeof createStore>) {
  const request = { rev: 1, owner: 'first', newLoss: 'loss 1' }
  await scripts.take('id', { ...request, reported: undefined })
  await scripts.take('id', { ...request, reported: 'loss 1' })
  clock.advanceSeconds(2)
  return scripts.take('id', { ...request, reported: 'loss 1' })
}

test('a lock that the store has kept is confirmed', async t => {
  const store = createStore()
  t.like(await takeLock(store), { kind: 'mine' })
  store.clock.advanceSeconds(30)
  t.true(await store.scripts.hold('id', 1, 'first', 35_000, 'loss 2'))
})

test('a lock that the store has lost is stored again but not confirmed, because another process may have used the token', async t => {
  const store = createStore()
  await takeLock(store)
  store.storage.entries.delete('id')
  t.false(await store.scripts.hold('id', 1, 'first', 35_000, 'loss 2'))
  const other = { rev: 1, owner: 'second', reported: 'loss 2', newLoss: 'loss 3' }
  t.like(await store.scripts.take('id', other), { kind: 'unsettled' })
  store.clock.advanceSeconds(2)
  t.like(await store.scripts.take('id', other), { kind: 'held' }, 'the owner may have sent the token before the loss')
})

test('a lock that was stored again after a loss is not confirmed by asking again', async t => {
  const store = createStore()
  await takeLock(store)
  store.storage.entries.delete('id')
  await store.scripts.hold('id', 1, 'first', 35_000, 'loss 2')
  t.false(await store.scripts.hold('id', 1, 'first', 35_000, 'loss 3'))
})
