// What a Redis that is back is told, and how: it answers by itself here, so that nothing takes time but our own part.
import { setImmediate as nextTurn } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { createRedisCoordination } from '#src/coordination/redis.js'
import type { RedisCommands, RedisEvents } from '#src/coordination/redis-client.js'
import { createKeyring } from '#src/sealing/keyring.js'
import { collectLogs } from '../helpers/logs.js'
import { KEEP_MS, until } from './work.js'

/** A store whose Redis knows nothing, and counts what it is told. */
async function startStore(t: ExecutionContext) {
  let events: RedisEvents | undefined
  let sealed = 0
  const told = { results: new Set<string>(), marks: new Set<string>(), mostSealedAhead: 0 }
  let goneAfter = Number.POSITIVE_INFINITY
  const commands = {
    async eval(_script: string, _keyCount: number, firstKey: string) {
      // Of all scripts, the one that restores alone begins with the result.
      if (!firstKey.endsWith(':result')) return null
      told.mostSealedAhead = Math.max(told.mostSealedAhead, sealed - told.results.size)
      await nextTurn()
      if (told.results.size >= goneAfter) throw Object.assign(new Error('READONLY'), { name: 'ReplyError' })
      return told.results.add(firstKey)
    },
    async set(key: string) {
      await nextTurn()
      told.marks.add(key)
    },
    pttl: async () => -2
  } as unknown as RedisCommands
  const sealer = createKeyring(['a secret that replicas share']).sealer('shared results')
  const coordination = createRedisCoordination({
    async open(given) {
      events = given
      return { commands, close: async () => {} }
    },
    prefix: '',
    sealer: {
      ...sealer,
      seal(plaintext, context) {
        sealed++
        return sealer.seal(plaintext, context)
      }
    },
    now: Date.now,
    log: (await collectLogs()).log,
    timing: { commandMs: 20_000 }
  })
  t.teardown(() => coordination.close())
  await until(() => coordination.status().store === 'redis')
  return {
    coordination,
    told,
    /** @param after so many results it goes again */
    comeBack(after = goneAfter) {
      goneAfter = after
      sealed = 0
      told.results.clear()
      told.marks.clear()
      events?.onLost()
      events?.onReady()
    }
  }
}

async function fill({ coordination }: Awaited<ReturnType<typeof startStore>>, results: number, marks: number) {
  for (let n = 0; n < results; n++) await coordination.once(`key ${n}`, async () => ({ value: n, keepMs: KEEP_MS }))
  await Promise.all(Array.from({ length: marks }, (_, n) => coordination.mark(`mark ${n}`, KEEP_MS)))
}

test('a Redis that is back is told everything, and a part is sealed only when the one before has arrived', async t => {
  const store = await startStore(t)
  await fill(store, 1050, 450)
  store.comeBack()
  await until(() => store.told.marks.size === 450)
  t.is(store.told.results.size, 1050)
  t.true(store.told.mostSealedAhead <= 200, `${store.told.mostSealedAhead} sealed ahead`)
})

test('a Redis that goes again while it is told is not told the rest', async t => {
  const store = await startStore(t)
  await fill(store, 450, 1)
  store.comeBack(200)
  await until(() => store.coordination.status().store === 'memory (redis away)')
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  t.is(store.told.results.size, 200)
  t.is(store.told.marks.size, 0)
})
