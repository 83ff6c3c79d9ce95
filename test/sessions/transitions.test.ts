// The rules of the session store, as examples. What holds in any history is in model.test.ts.
import test from 'ava'
import {
  acquire,
  type Cell,
  commit,
  type End,
  find,
  type Known,
  type Outcome,
  restore,
  TIMES
} from '#src/sessions/transitions.js'

const REFUSED: End = { reason: 'refused' }
const DENIED: End = { reason: 'denied', problem: 'not_listed', missing: [] }
const NOW = 1_700_000_000_000
const RECOVERY_MS = 2000
const me = { owner: 'me' }
const other = { owner: 'other' }

const knows = (rev: number, recordRev = rev): Known<string> => ({
  rev,
  recordRev,
  record: recordRev === 0 ? undefined : `record ${recordRev}`
})
const cellAt = (rev: number, more: Partial<Cell<string>['entry']> = {}): Cell<string> => ({
  entry: { rev, hasRecord: true, ...more },
  record: `record ${rev}`
})
const leased = (until: number, owner = other) => ({ lease: { ...owner, until } })
const tokens = (rev: number): Outcome<string> => ({ kind: 'tokens', record: `record ${rev}`, pauseMs: 0 })

test('find tells where a session stands', t => {
  t.deepEqual(find(undefined, knows(0)), { kind: 'current' }, 'a login')
  t.deepEqual(find(undefined, knows(1)), { kind: 'lost' })
  t.deepEqual(find(cellAt(2), knows(2)), { kind: 'current' })
  t.deepEqual(find(cellAt(3), knows(2)), { kind: 'newer', rev: 3, record: 'record 3' })
  t.deepEqual(find(cellAt(3), knows(3, 0)), { kind: 'newer', rev: 3, record: 'record 3' }, 'a reference')
  t.deepEqual(find(cellAt(1), knows(2)), { kind: 'lost' }, 'a revision that a cookie names is a proof')
  t.deepEqual(find({ entry: { rev: 3, hasRecord: false } }, knows(2)), { kind: 'lost' })
  t.deepEqual(find(cellAt(2, { over: REFUSED }), knows(2)), { kind: 'over', end: REFUSED })
  t.deepEqual(find(cellAt(1, { over: REFUSED }), knows(2)), { kind: 'lost' }, 'a higher revision is live')
  const ended = { kind: 'over', end: DENIED, isFinal: true }
  t.deepEqual(find(cellAt(1, { over: DENIED, isFinal: true }), knows(2)), ended, 'over for good')
})

test('a caller that finds a session leased writes nothing, and the lease of a dead process is replaced', t => {
  const { cell } = acquire(cellAt(2), NOW, { ...knows(2), me }, RECOVERY_MS)
  const asked = acquire(cell, NOW + 1, { ...knows(2), me: other }, RECOVERY_MS)
  t.deepEqual(asked, { result: { kind: 'leased', lease: { ...me, until: NOW + TIMES.leaseMs } } })
  t.is(acquire(cell, NOW + 1, { ...knows(2), me: other, dead: 'me' }, RECOVERY_MS).result.kind, 'granted')
})

test('a lease that lies beyond the longest one is shortened by the first process that finds it', t => {
  const cell = cellAt(2, leased(NOW + 10 * TIMES.leaseMs))
  const first = acquire(cell, NOW, { ...knows(2), me }, RECOVERY_MS)
  t.like(first.result, { kind: 'leased' })
  t.is(first.cell?.entry.lease?.until, NOW + TIMES.leaseMs)
  t.is(acquire(first.cell, NOW + TIMES.leaseMs, { ...knows(2), me }, RECOVERY_MS).result.kind, 'granted')
})

test('a request without a record starts a recovery time of 30 seconds, and then finds that the session is lost', t => {
  const repaired = acquire<string>(undefined, NOW, { ...knows(3, 0), me }, RECOVERY_MS)
  t.deepEqual(repaired.result, { kind: 'lost' })
  t.like(repaired.cell?.entry, { rev: 3, hasRecord: false, notBefore: { until: NOW + 30_000 } })
  const later = acquire(repaired.cell, NOW + 30_000, { ...knows(3, 0), me }, RECOVERY_MS)
  t.deepEqual(
    later,
    { result: { kind: 'over', end: { reason: 'lost' } } },
    'not stored: another request may bring the record'
  )
  const brought = restore(repaired.cell, NOW + 1000, { ...knows(3), me: other, unused: [] }, RECOVERY_MS)
  t.is(brought.cell?.record, 'record 3')
})

test('commit stores tokens also without the lease, and leaves the lease of another process', t => {
  const stored = commit(cellAt(2, leased(NOW + 1000)), NOW, { rev: 2, owner: 'me', outcome: tokens(3) })
  t.deepEqual(stored.result, { kind: 'stored' })
  t.deepEqual(stored.cell, { entry: { rev: 3, hasRecord: true, ...leased(NOW + 1000) }, record: 'record 3' })
  t.is(commit(undefined, NOW, { rev: 2, owner: 'me', outcome: tokens(3) }).result.kind, 'stored')
  const repaired = { entry: { rev: 3, hasRecord: false } }
  t.is(commit(repaired, NOW, { rev: 2, owner: 'me', outcome: tokens(3) }).cell?.record, 'record 3')
})

test('a cell keeps each series of refusals until a success, however far apart they are, but at most eight', t => {
  const refused = (cell: Cell<string> | undefined, now: number, refusedAs: string | undefined) => {
    const granted = acquire(cell, now, { ...knows(2), me }, RECOVERY_MS)
    const outcome = { kind: 'failure', pauseMs: 1000, refusedAs } as const
    return { granted, ...commit(granted.cell, now, { rev: 2, owner: 'me', outcome }) }
  }
  const first = refused(cellAt(2), NOW, 'a')
  const a = { since: NOW, last: NOW, refusals: 1 }
  t.deepEqual(first.cell?.entry.suspect, { a })
  const pausedAt = (cell: Cell<string> | undefined, now: number) =>
    acquire(cell, now, { ...knows(2), me: other }, RECOVERY_MS).result
  t.like(pausedAt(first.cell, NOW + 999), { kind: 'paused', isSuspect: false })
  const later = NOW + 10 * 3_600_000
  const second = refused(first.cell, later, 'a')
  t.deepEqual(second.granted.result, { kind: 'granted', suspect: { a } })
  t.deepEqual(second.cell?.entry.suspect, { a: { since: NOW, last: later, refusals: 2 } })
  t.like(pausedAt(second.cell, later), { kind: 'paused', isSuspect: true })
  const failed = refused(second.cell, later + 20_000, undefined)
  t.deepEqual(failed.cell?.entry.suspect, second.cell?.entry.suspect, 'another failure says nothing about the token')
  let cell = failed.cell
  for (let number = 1; number <= 8; number++) cell = refused(cell, later + 20_000 + number * 1000, `${number}`).cell
  t.deepEqual(Object.keys(cell?.entry.suspect ?? {}).sort(), ['1', '2', '3', '4', '5', '6', '7', '8'])
  const { granted } = refused(cell, later + 60_000, 'a')
  const refreshed = commit(granted.cell, later + 60_000, { rev: 2, owner: 'me', outcome: tokens(3) })
  t.is(refreshed.cell?.entry.suspect, undefined)
})

test('restore takes the lease for the revision that was sent, and for no other one', t => {
  const request = { ...knows(2), me, unused: [], sent: { rev: 2, ms: 5000 } }
  const taken = restore(cellAt(2, leased(NOW + 1000)), NOW, request, RECOVERY_MS)
  t.deepEqual(taken.cell?.entry.lease, { ...me, until: NOW + TIMES.leaseMs - 5000 })
  const longer = restore(cellAt(2, leased(NOW + TIMES.leaseMs + 5000)), NOW, request, RECOVERY_MS)
  t.deepEqual(longer.cell?.entry.lease, { ...me, until: NOW + TIMES.leaseMs })
  const older = restore(cellAt(2, leased(NOW + 1000, me)), NOW, request, RECOVERY_MS)
  t.is(older.cell?.entry.lease?.until, NOW + TIMES.leaseMs - 5000, 'an old replica brings back an earlier lease')
  t.is(restore(cellAt(3, leased(NOW + 1000)), NOW, { ...request, ...knows(3) }, RECOVERY_MS).cell, undefined)
})
