// Results, logouts and leases that are not in Redis although its connection stays open, because single commands fail or keys are
// evicted: each of them is stored again, whatever else the process is doing at that time.
import test from 'ava'
import { ignoreUnavailable, StoreUnavailableError } from '#src/sessions/cells.js'
import { createRetries } from '#src/sessions/restores.js'
import { createClock } from '../helpers/clock.js'
import { createDeferred } from '../helpers/deferred.js'
import { type SessionCells, setUpExpired, setUpRefresh } from './setup.js'

/** Lets all work go on that waits for no timer. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await new Promise(resolve => setImmediate(resolve))
}

const unavailable = async (): Promise<never> => {
  throw new StoreUnavailableError('redis')
}

/** Cells whose commands a test holds back or lets fail. */
function controlled() {
  const control = { command: undefined as ((name: 'read' | 'swap') => Promise<void>) | undefined }
  const cells = (inner: SessionCells): SessionCells => ({
    ...inner,
    async read(...parameters) {
      await control.command?.('read')
      return inner.read(...parameters)
    },
    async swap(...parameters) {
      await control.command?.('swap')
      return inner.swap(...parameters)
    }
  })
  return { control, cells }
}

/** Holds the next commands back. */
function holdCommands(control: ReturnType<typeof controlled>['control']): () => void {
  const [gate, open] = createDeferred()
  control.command = () => gate
  return open
}

/** Replaces the cell by one that Redis has after it lost the lease, and tells all processes so. */
async function loseLease({ cells, clock, record }: Awaited<ReturnType<typeof setUpRefresh>>): Promise<void> {
  const { id } = record
  const notBefore = { until: clock.now() + 2000, why: 'loss' } as const
  await cells.swap(
    { id },
    await cells.read({ id }, true),
    { entry: { rev: 1, hasRecord: true, notBefore }, record },
    { now: clock.now(), message: { kind: 'lost', id, rev: 1, from: 'another process' }, mayFail: false }
  )
}

test('a result that cannot be stored while its session is being restored is stored after the restore', async t => {
  const setUp = await setUpExpired('single')
  const { clock, idp, record, cells } = setUp
  const { control, cells: change } = controlled()
  const process = setUp.addProcessWith({ cells: change })
  const { waiting, letGo } = await idp.hold(() => process.current(record))
  const finishRestore = holdCommands(control)
  await loseLease(setUp)
  await turns()
  control.command = unavailable
  letGo()
  await waiting
  control.command = undefined
  finishRestore()
  await turns()
  await clock.runUntilSettled(process.sessions.saved())
  const stored = await cells.read({ id: record.id }, true)
  t.is(stored.content?.record?.fields.refresh_token, idp.newestRefreshToken)
  t.is((await setUp.live(record)).fields.refresh_token, idp.newestRefreshToken)
  t.deepEqual(idp.reused, [])
})

test('a logout that cannot be stored while its session is being restored is stored after the restore', async t => {
  const setUp = await setUpRefresh('single')
  const { clock, record } = setUp
  const { control, cells } = controlled()
  const process = setUp.addProcessWith({ cells })
  await process.live(record)
  setUp.disconnect()
  const finishRestore = holdCommands(control)
  process.sessions.receive({ kind: 'lost', id: record.id, rev: 1, from: 'another process' })
  await turns()
  control.command = unavailable
  t.false((await process.sessions.end(record)).isStored)
  control.command = undefined
  finishRestore()
  await turns()
  await clock.runUntilSettled(process.sessions.saved())
  // The cell shows the logout also to a process that missed the message.
  const { content } = await setUp.cells.read({ id: record.id }, false)
  t.deepEqual([content?.entry.isFinal, content?.entry.over], [true, { reason: 'logged_out' }])
})

test('a process that reports a loss because of a change also restores the lease of its own token request', async t => {
  const setUp = await setUpExpired('single', { recoveryMs: 2000 })
  const { idp, clock, cells } = setUp
  const record = { ...setUp.record, key: 'the key in the cookie of this session' }
  const { waiting, letGo } = await idp.hold(() => setUp.current(record))
  const { id } = record
  const lost = { entry: { rev: 1, hasRecord: false } }
  await cells.swap({ id }, await cells.read({ id }, true), lost, {
    now: clock.now(),
    message: undefined,
    mayFail: false
  })
  const changed = setUp.sessions.change(record, { theme: 'dark' }).catch(ignoreUnavailable)
  await turns()
  t.is((await cells.read({ id }, false)).content?.entry.lease?.owner, 'process 1')
  letGo()
  await clock.runUntilSettled(Promise.all([waiting, changed]))
  t.deepEqual(idp.reused, [])
})

for (const [reason, what] of [
  ['logged_out', 'a logout at another process'],
  ['replaced', 'a new login of the same browser at another process']
] as const) {
  const isRevoked = reason === 'logged_out'
  const revocation = isRevoked ? 'revoked' : 'not revoked, because that could end the new login'
  test(`after ${what}, the refresh token of a result that was not stored, or that comes later, is ${revocation}`, async t => {
    for (const isStored of [false, true]) {
      const { idp, record, clock, addProcess, sessions } = await setUpExpired('single')
      const process = addProcess()
      const { waiting, letGo } = await idp.hold(() => process.current(record))
      if (!isStored) process.disconnect()
      if (isStored) await sessions.end(record, { reason })
      letGo()
      await waiting
      if (!isStored) await sessions.end(record, { reason })
      await process.reconnect()
      await clock.runUntilSettled(process.sessions.saved())
      t.deepEqual(await process.current(record), { kind: 'over', end: { reason } })
      t.deepEqual(idp.revoked, isRevoked ? [idp.newestRefreshToken] : [])
    }
  })
}

/** Cells that return records only when they are read whole, as those in Redis. */
const likeRedis = (cells: SessionCells): SessionCells => ({
  ...cells,
  async read(key, isWhole) {
    const { content, ...snapshot } = await cells.read(key, isWhole)
    return { ...snapshot, content: content && (isWhole ? content : { entry: content.entry }) }
  },
  async swap(...parameters) {
    const { isDone, snapshot } = await cells.swap(...parameters)
    return { isDone, snapshot: { ...snapshot, content: snapshot.content && { entry: snapshot.content.entry } } }
  }
})

test('a response that comes after the end of its lease is dropped, and the session continues with the stored one', async t => {
  const { idp, record, clock, addProcessWith } = await setUpExpired('single')
  const [late, other] = [addProcessWith({ cells: likeRedis }), addProcessWith({ cells: likeRedis })]
  const first = record.fields.refresh_token
  const { waiting, letGo } = await idp.hold(() => late.current(record))
  clock.advance(66_000)
  const stored = await clock.runUntilSettled(other.live(record))
  // This provider accepts the first token once more.
  idp.rotate(stored.fields.refresh_token, first)
  letGo()
  await clock.runUntilSettled(waiting)
  t.not(idp.newestRefreshToken, stored.fields.refresh_token)
  for (const process of [late, other]) {
    t.is((await process.newest(record))?.fields.refresh_token, stored.fields.refresh_token)
  }
})

test('a result whose cell cannot be decrypted is neither repeated nor waited for, and stored when the secrets change', async t => {
  const { idp, record, clock, cells: stored, addProcessWith } = await setUpExpired('single')
  const { control, cells } = controlled()
  const process = addProcessWith({ cells })
  const { waiting, letGo } = await idp.hold(() => process.current(record))
  let commands = 0
  control.command = async () => {
    commands++
    throw new StoreUnavailableError('unreadable')
  }
  letGo()
  await waiting
  await clock.runUntilSettled(process.sessions.saved())
  const before = commands
  clock.advance(60_000)
  await turns()
  t.is(commands, before)
  control.command = undefined
  await process.sessions.restoreAll()
  const { content } = await stored.read({ id: record.id }, true)
  t.is(content?.record?.fields.refresh_token, idp.newestRefreshToken)
})

test('a result that a restore stored before its own write is remembered, although Redis cannot be read then', async t => {
  const { idp, record, addProcessWith } = await setUpExpired('single')
  const { control, cells } = controlled()
  const process = addProcessWith({ cells: inner => cells(likeRedis(inner)) })
  const { waiting, letGo } = await idp.hold(() => process.current(record))
  const [gate, open] = createDeferred()
  let commands = 0
  control.command = async () => {
    if (commands++ === 0) await gate
  }
  letGo()
  await turns()
  process.sessions.receive({ kind: 'lost', id: record.id, rev: 1, from: 'another process' })
  await turns()
  control.command = async name => {
    if (name === 'read') await unavailable()
  }
  open()
  await waiting
  // If Redis loses the result now, only this process can restore it.
  t.is(process.sessions.newest(record.id)?.fields.refresh_token, idp.newestRefreshToken)
})

test('a logout returns the newest record although a refresh was stored while it read the cell', async t => {
  const { idp, record, live, addProcessWith } = await setUpExpired('single')
  let isFirst = true
  const process = addProcessWith({
    cells: cells => ({
      ...likeRedis(cells),
      async read(key, isWhole) {
        const snapshot = await likeRedis(cells).read(key, isWhole)
        if (isFirst) {
          isFirst = false
          await live(record)
        }
        return snapshot
      }
    })
  })
  const { record: ended } = await process.sessions.end({ id: record.id })
  t.is(ended?.fields.refresh_token, idp.newestRefreshToken)
})

test('work that is started again while it runs is done once more, and an urgent start ends the wait for the next attempt', async t => {
  const clock = createClock()
  const retries = createRetries(clock)
  const begun: string[] = []
  const gates: { settle: (error?: Error) => void }[] = []
  const work = (name: string) => () => {
    begun.push(name)
    return new Promise<void>((resolve, reject) => gates.push({ settle: error => (error ? reject(error) : resolve()) }))
  }
  const settle = async (error?: Error) => {
    gates.shift()?.settle(error)
    await turns()
  }
  retries.start('id', work('first'))
  retries.start('id', work('second'))
  await settle()
  clock.advance(200)
  await turns()
  t.deepEqual(begun, ['first', 'second'])
  await settle(new Error('Redis is away'))
  t.deepEqual(clock.timers(), [400])
  retries.start('id', work('not urgent'))
  await turns()
  t.is(begun.length, 2)
  retries.start('id', work('urgent'), { isUrgent: true })
  await turns()
  t.deepEqual(begun.slice(2), ['urgent'])
  await settle()
  await retries.ended()
  t.deepEqual([begun.length, clock.timers().length], [3, 0])
})
