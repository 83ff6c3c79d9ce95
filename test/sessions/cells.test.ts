// The contract of the cells: the memory of a process, and every Redis or Valkey server that is installed or named in
// REDIS_SERVERS, alone and as a cluster, behave in the same way.
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { Cluster, Redis } from 'ioredis'
import { systemClock } from '#src/base/clock.js'
import { createKeyring } from '#src/cookie/keyring.js'
import type { SessionRecord } from '#src/cookie/session-record.js'
import { apply, type Cells, type Message, StoreUnavailableError } from '#src/sessions/cells.js'
import { createProcessMemory } from '#src/sessions/memory.js'
import { createMemoryCells } from '#src/sessions/memory-cells.js'
import { createRedisCells, createSwapScript, type SendCommand, sessionFormat } from '#src/sessions/redis/redis-cells.js'
import type { RedisCommands } from '#src/sessions/redis/redis-client.js'
import type { SessionKey } from '#src/sessions/session-types.js'
import { createSessionStore } from '#src/sessions/store.js'
import type { Cell } from '#src/sessions/transitions.js'
import { eventually } from '../helpers/eventually.js'
import { startRedis, testWithRedis } from '../helpers/redis.js'
import { redisPrograms } from '../helpers/redis-server.js'
import { startRedisCluster } from '../helpers/redis-topologies.js'
import { recordOf } from './replicas.js'

type SessionCells = Cells<Cell<SessionRecord>, SessionKey>

const SHORT_MS = 300
const LONG_MS = 60_000
const lifetimeMs = ({ entry }: Cell<SessionRecord>) => (entry.rev === 0 ? SHORT_MS : LONG_MS)
const noMessage = { message: undefined, mayFail: false }

const cellOf = (id: string, rev: number): Cell<SessionRecord> => ({
  entry: { rev, hasRecord: true },
  record: recordOf(id, rev)
})

function redisCells(commands: RedisCommands) {
  const script = createSwapScript(systemClock)
  const send: SendCommand = (_name, command) => command(commands)
  const format = sessionFormat(createKeyring(['a secret of this test']).sealer('stored session'), lifetimeMs)
  const sealMessage = (message: Message) => JSON.stringify(message)
  const parts = { send, script, prefix: 'test:', channel: 'test:messages', sealMessage, mayBeTooLong: () => false }
  return { cells: createRedisCells(parts, format), probe: () => script.probe(commands, 'test:probe') }
}

/** Starts a Redis, and returns cells in it whose script is loaded. */
async function startCells(t: ExecutionContext, program: string) {
  const { admin, port } = await startRedis(t, [], { program })
  const { cells, probe } = redisCells(admin as unknown as RedisCommands)
  await probe()
  return { admin, port, cells }
}

async function checkContract(t: ExecutionContext, cells: SessionCells): Promise<void> {
  const swap = async (id: string, next: Cell<SessionRecord>, key?: string) =>
    cells.swap({ id, key }, await cells.read({ id, key }, true), next, { ...noMessage, now: cells.now() })

  const missing = await cells.read({ id: 'a' }, true)
  t.is(missing.content, undefined)
  t.true((await swap('a', cellOf('a', 1))).isDone)
  const first = await cells.read({ id: 'a' }, true)
  t.deepEqual(first.content, cellOf('a', 1))
  t.deepEqual((await cells.read({ id: 'a' }, false)).content?.entry, { rev: 1, hasRecord: true })

  const now = cells.now()
  const conflict = await cells.swap({ id: 'a' }, missing, cellOf('a', 2), { ...noMessage, now })
  t.false(conflict.isDone, 'the cell is no longer the expected one')
  t.like(conflict.snapshot.content, { entry: { rev: 1 } })

  const entryOnly = await cells.read({ id: 'a' }, false)
  const leased = { rev: 1, hasRecord: true, lease: { owner: 'o', until: 5 } }
  t.true((await cells.swap({ id: 'a' }, entryOnly, { entry: leased }, { ...noMessage, now })).isDone)
  t.deepEqual(
    (await cells.read({ id: 'a' }, true)).content,
    { entry: leased, record: recordOf('a', 1) },
    'the record is kept'
  )
  t.true((await swap('a', { entry: { rev: 1, hasRecord: false, over: { reason: 'refused' } } })).isDone)
  t.is((await cells.read({ id: 'a' }, true)).content?.record, undefined, 'the record is removed')

  t.true((await swap('b', cellOf('b', 3))).isDone)
  t.is((await cells.read({ id: 'a' }, true)).content?.entry.rev, 1, 'another cell has not changed')

  const raised = await Promise.all(
    Array.from({ length: 4 }, () =>
      apply(cells, { id: 'counter' }, content => {
        const rev = (content?.entry.rev ?? 0) + 1
        return { result: rev, cell: { entry: { rev, hasRecord: false } } }
      }).catch(error => error as Error)
    )
  )
  const done = raised.filter(result => typeof result === 'number')
  t.is((await cells.read({ id: 'counter' }, false)).content?.entry.rev, done.length, 'no change is lost')

  t.true((await swap('short', { entry: { rev: 0, hasRecord: false } })).isDone)
  await eventually(async () => (await cells.read({ id: 'short' }, false)).content === undefined)
}

test('memory keeps the contract of the cells', async t => {
  await checkContract(t, createMemoryCells(Date.now, lifetimeMs))
})

for (const { name, program } of redisPrograms) {
  testWithRedis(`${name} keeps the contract of the cells`, async t => {
    const { admin, cells } = await startCells(t, program)
    await checkContract(t, cells)
    for (const key of await admin.keys('*')) {
      const left = await admin.pttl(key)
      // Redis returns -1 for a key without an expiry. The key of a probe may expire at this very moment.
      t.true(left !== -1 && left <= LONG_MS, `${key} expires in ${left} ms`)
    }
  })

  testWithRedis(`${name}: a swap publishes its message in the same step, and only if it is done`, async t => {
    const { port, cells } = await startCells(t, program)
    const subscriber = new Redis(port)
    t.teardown(() => subscriber.disconnect())
    const received: unknown[] = []
    subscriber.on('message', (_channel, text) => received.push(JSON.parse(text)))
    await subscriber.subscribe('test:messages')
    const message: Message = { kind: 'lost', id: 'a', rev: 1, from: 'me' }
    const missing = await cells.read({ id: 'a' }, false)
    const options = { message, mayFail: false, now: cells.now() }
    t.true((await cells.swap({ id: 'a' }, missing, cellOf('a', 1), options)).isDone)
    t.false((await cells.swap({ id: 'a' }, missing, cellOf('a', 2), options)).isDone)
    await eventually(() => received.length > 0)
    await pause(50)
    t.deepEqual(received, [message])
  })

  testWithRedis(`${name}: a swap with a wrong time is refused, and its reply corrects the clock`, async t => {
    const { cells } = await startCells(t, program)
    const missing = await cells.read({ id: 'a' }, false)
    for (const wrongMs of [-3000, 3000]) {
      const options = { ...noMessage, now: cells.now() + wrongMs }
      t.false((await cells.swap({ id: 'a' }, missing, cellOf('a', 1), options)).isDone)
    }
    t.true(Math.abs(cells.now() - Date.now()) < 1000)
  })

  testWithRedis(`${name}: when it is full, a change that may fail is refused, and the others are stored`, async t => {
    const { admin, cells } = await startCells(t, program)
    const options = { ...noMessage, now: cells.now() }
    t.true((await cells.swap({ id: 'a' }, await cells.read({ id: 'a' }, false), cellOf('a', 1), options)).isDone)
    await admin.config('SET', 'maxmemory', '1')
    const found = await cells.read({ id: 'a' }, false)
    await t.throwsAsync(cells.swap({ id: 'a' }, found, cellOf('a', 2), { ...options, mayFail: true }), {
      message: /OOM/
    })
    t.true((await cells.swap({ id: 'a' }, found, cellOf('a', 2), options)).isDone)
    await admin.config('SET', 'maxmemory', '0')
    t.deepEqual((await cells.read({ id: 'a' }, true)).content, cellOf('a', 2))
  })

  testWithRedis(`${name}: what is stored is encrypted, and cannot be moved to another key or revision`, async t => {
    const { admin, cells } = await startCells(t, program)
    const write = async (id: string, rev: number, key?: string) => {
      const record = { ...recordOf(id, rev, 'secret token'), ...(key !== undefined && { key }) }
      const found = await cells.read({ id, key }, true)
      const cell = { entry: { rev, hasRecord: true }, record }
      await cells.swap({ id, key }, found, cell, { ...noMessage, now: cells.now() })
    }
    await write('a', 1)
    const old = await admin.hgetall('test:session:a')
    t.deepEqual(Object.keys(old).sort(), ['e', 'r'])
    for (const text of Object.values(old)) t.notRegex(text, /secret|"rev"|token/)
    await write('a', 2)
    await write('b', 1)
    await admin.hset('test:session:b', old)
    t.like(await cells.read({ id: 'b' }, true), { isUnreadable: true, content: undefined })
    await admin.hset('test:session:a', 'r', old.r ?? '')
    const mixed = await cells.read({ id: 'a' }, true)
    t.is(mixed.content?.record, undefined, 'the record of another revision does not open')
    await write('c', 1, 'the key in the cookie')
    t.is((await cells.read({ id: 'c' }, true)).content?.record, undefined)
    t.is((await cells.read({ id: 'c', key: 'another key' }, true)).content?.record, undefined)
    t.is((await cells.read({ id: 'c', key: 'the key in the cookie' }, true)).content?.record?.id, 'c')
  })
}

testWithRedis('parallel reads of a session share one command, and no read joins one that was sent before', async t => {
  const { admin } = await startRedis(t)
  let reads = 0
  const commands = {
    hmget: (...parameters: [string, string, string]) => {
      reads++
      return admin.hmget(...parameters)
    }
  } as unknown as RedisCommands
  const { cells } = redisCells(commands)
  const memory = createProcessMemory(systemClock, LONG_MS)
  const store = createSessionStore({ cells, memory, me: () => ({ owner: 'this process' }), revoke() {} })
  // Browsers may send cookies of different revisions.
  await Promise.all(Array.from({ length: 100 }, (_, index) => store.find(recordOf('a', index, 'token'))))
  t.is(reads, 1)
  const first = cells.read({ id: 'a' }, true)
  await new Promise(resolve => setImmediate(resolve))
  await Promise.all([first, cells.read({ id: 'a' }, true)])
  t.is(reads, 3)
})

testWithRedis('a cluster keeps the contract of the cells', async t => {
  const { nodes } = await startRedisCluster(t)
  const cluster = new Cluster([{ host: '127.0.0.1', port: nodes[0]?.port as number }])
  t.teardown(() => cluster.disconnect())
  const { cells, probe } = redisCells(cluster as unknown as RedisCommands)
  await probe()
  await checkContract(t, cells)
})

test('in memory, at the limit of cells, no session is added, and the oldest records are dropped first', async t => {
  const cells = createMemoryCells<SessionRecord>(Date.now, lifetimeMs, { cells: 3, records: 2 })
  const write = async (id: string, mayFail: boolean) =>
    cells.swap({ id }, await cells.read({ id }, true), cellOf(id, 1), { message: undefined, mayFail, now: Date.now() })
  for (const id of ['a', 'b', 'c']) t.true((await write(id, true)).isDone)
  const error = await t.throwsAsync(write('d', true), { instanceOf: StoreUnavailableError })
  t.is(error?.problem, 'full')
  t.true((await write('a', true)).isDone, 'a session that is known can change')
  t.like((await cells.read({ id: 'b' }, true)).content, { entry: { rev: 1, hasRecord: false } })
  t.like((await cells.read({ id: 'c' }, true)).content, { entry: { rev: 1, hasRecord: true }, record: { id: 'c' } })
})

test('if the value of the last probe expires between two attempts, a read-only Redis does not count as available', async t => {
  const error = new Error('READONLY')
  const replies = [[0, Date.now(), 'probe'], [0, Date.now(), null], error]
  const commands = {
    async evalsha() {
      const reply = replies.shift()
      if (reply === error) throw error
      return reply
    }
  } as unknown as RedisCommands
  await t.throwsAsync(redisCells(commands).probe(), { is: error })
})
