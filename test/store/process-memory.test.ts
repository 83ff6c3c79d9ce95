import test from 'ava'
import { createProcessMemory } from '#src/store/process-memory.js'
import { createClock } from '../helpers/clock.js'

test('a lock is forgotten with its owner, and those of another owner stay', t => {
  const memory = createProcessMemory(createClock(), { entryMs: 60_000, keepMs: 1000 })
  const owner = memory.ownerOf('id')
  const lock = { id: 'id', rev: 1, owner, elapsedMs: () => 0, generation: 0, suspectMs: undefined }
  memory.locks.set('id', lock)
  memory.forgetLock({ id: 'id', owner: 'the owner of a change' })
  t.is(memory.locks.get('id'), lock)
  t.is(memory.ownerOf('id'), owner)
  memory.forgetLock(lock)
  t.is(memory.locks.get('id'), undefined)
  t.not(memory.ownerOf('id'), owner)
})
