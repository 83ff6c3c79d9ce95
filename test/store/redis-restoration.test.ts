// After a new connection, a replica stores its recent sessions and logouts again. The Redis here is a fake that answers at
// once.
import { setImmediate as nextTurn } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { createKeyring } from '#src/session/keyring.js'
import { createRedisStore } from '#src/store/index.js'
import type { RedisCommands, RedisEvents } from '#src/store/redis-client.js'
import { LOCK_MS } from '#src/store/scripts.js'
import { systemClock } from '#src/support/clock.js'
import { eventually } from '../helpers/eventually.js'
import { collectLogs } from '../helpers/logs.js'
import { lockOf, recordOf, save } from './replicas.js'

const KEEP_MS = 60_000
// The number of arguments of EVALSHA shows which script it is.
const SAVED_ARGUMENTS = 15
const OUT_ARGUMENTS = 6

/** A store that is connected to an empty Redis. `written` counts what the store writes. */
async function startStore(t: ExecutionContext) {
  let events: RedisEvents | undefined
  const written = { sessions: new Set<string>(), logouts: new Set<string>(), atOnce: 0, mostAtOnce: 0 }
  let goneAfter = Number.POSITIVE_INFINITY
  const commands = {
    async evalsha(...args: unknown[]) {
      const key = String(args[2])
      if (args.length !== SAVED_ARGUMENTS && args.length !== OUT_ARGUMENTS) return ['mine', -1]
      written.mostAtOnce = Math.max(written.mostAtOnce, ++written.atOnce)
      await nextTurn()
      written.atOnce--
      if (written.sessions.size >= goneAfter) throw Object.assign(new Error('READONLY'), { name: 'ReplyError' })
      if (args.length === OUT_ARGUMENTS) written.logouts.add(key)
      else written.sessions.add(key)
      return args.length === OUT_ARGUMENTS ? null : ['saved', 1]
    },
    set: async () => 'OK',
    publish: async () => 1
  } as unknown as RedisCommands
  const store = createRedisStore({
    async open(given) {
      events = given
      return { commands, close: async () => {} }
    },
    prefix: '',
    keyring: createKeyring(['a secret that replicas share']),
    clock: systemClock,
    log: (await collectLogs()).log,
    times: { entryMs: KEEP_MS, loginMs: KEEP_MS, keepMs: KEEP_MS, lockMs: LOCK_MS, settleMs: 0 }
  })
  t.teardown(() => store.close())
  return {
    store,
    written,
    /** @param after the number of stored sessions after which Redis fails again */
    comeBack(after = goneAfter) {
      goneAfter = after
      written.sessions.clear()
      written.logouts.clear()
      written.mostAtOnce = 0
      events?.onLost()
      events?.onReady()
    }
  }
}

async function fill({ store }: Awaited<ReturnType<typeof startStore>>, sessions: number, logouts: number) {
  const replica = { ...store, logs: await collectLogs() }
  for (let n = 0; n < sessions; n++)
    await save(replica, await lockOf(replica, { id: `id ${n}`, rev: 0 }), recordOf(`id ${n}`, 1))
  await Promise.all(Array.from({ length: logouts }, (_, n) => store.logOut(recordOf(`leaving ${n}`, 1))))
}

test('after a new connection, sessions and logouts are stored again in batches', async t => {
  const store = await startStore(t)
  await fill(store, 1050, 450)
  store.comeBack()
  await eventually(() => store.written.logouts.size === 450)
  t.is(store.written.sessions.size, 1050)
  t.true(store.written.mostAtOnce <= 100, `${store.written.mostAtOnce} were stored at once`)
})

test('storing again stops if Redis fails again', async t => {
  const store = await startStore(t)
  await fill(store, 450, 1)
  store.comeBack(200)
  await eventually(() => store.store.status() === 'away')
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  t.is(store.written.sessions.size, 200)
  t.is(store.written.logouts.size, 0)
})
