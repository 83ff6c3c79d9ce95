import test from 'ava'
import { systemClock } from '#src/base/clock.js'
import type { SessionRecord } from '#src/cookie/session-record.js'
import { createProcessMemory } from '#src/sessions/memory.js'
import { recordOf } from './replicas.js'

const DAY_MS = 86_400_000

/** A record with a token of 200 kB. */
function largeRecordOf(id: string): SessionRecord {
  const record = recordOf(id, 1)
  return { ...record, fields: { ...record.fields, token: 't'.repeat(200_000) } }
}

test('a process remembers the newest records up to 50 MB, and the revisions of all', t => {
  const memory = createProcessMemory(systemClock, DAY_MS)
  for (let index = 0; index < 500; index++) memory.remember(`id-${index}`, 1, largeRecordOf(`id-${index}`))
  const kept = Array.from({ length: 500 }, (_, index) => memory.recordOf(`id-${index}`)).filter(Boolean)
  t.true(kept.length > 200 && kept.length <= 250, `${kept.length} records of 200 kB`)
  t.is(memory.recordOf('id-499')?.id, 'id-499')
  t.is(memory.known('id-0').rev, 1)
  t.is(memory.size(), 500)
})

test('a result that is not stored yet is remembered whatever its size', t => {
  const memory = createProcessMemory(systemClock, DAY_MS)
  for (let index = 0; index < 500; index++) memory.addUnsaved(largeRecordOf(`id-${index}`))
  t.is(memory.recordOf('id-0')?.id, 'id-0')
  t.is(memory.possiblyLost().size, 500)
})

test('an equal record does not replace the remembered one, and a record with a different field does', t => {
  const memory = createProcessMemory(systemClock, DAY_MS)
  const first = recordOf('a', 1)
  memory.note(first)
  memory.note(structuredClone(first))
  t.is(memory.newest('a'), first)
  const changed = { ...first, fields: { ...first.fields, color: 'blue' } }
  memory.note(changed)
  t.is(memory.newest('a'), changed)
})
