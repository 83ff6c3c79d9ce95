// After Redis has lost its data, a replica publishes its results and marks again. The Redis here is a fake that answers at once.
import { setImmediate as nextTurn } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { createRedisCoordination } from '#src/coordination/redis.js'
import type { RedisCommands, RedisEvents } from '#src/coordination/redis-client.js'
import { timingOf } from '#src/coordination/timing.js'
import { createKeyring } from '#src/sealing/keyring.js'
import { eventually } from '../helpers/eventually.js'
import { collectLogs } from '../helpers/logs.js'
import { KEEP_MS } from './work.js'

/** A store that is connected to an empty Redis. `written` counts what the store writes. */
async function startStore(t: ExecutionContext) {
  let events: RedisEvents | undefined
  let sealed = 0
  const written = { results: new Set<string>(), marks: new Set<string>(), mostSealedAhead: 0 }
  let goneAfter = Number.POSITIVE_INFINITY
  const commands = {
    // 0 means that the heartbeat key does not exist, so Redis has lost its data.
    eval: async () => 0,
    async evalsha(_hash: string, _keyCount: number, firstKey: string, ...rest: unknown[]) {
      if (String(rest.at(-1)).startsWith('wake:')) return ['mine', 0]
      // Only the script `restore` has the key of a result as its first key.
      if (!firstKey.endsWith(':result')) return null
      written.mostSealedAhead = Math.max(written.mostSealedAhead, sealed - written.results.size)
      await nextTurn()
      if (written.results.size >= goneAfter) throw Object.assign(new Error('READONLY'), { name: 'ReplyError' })
      return written.results.add(firstKey)
    },
    async set(key: string) {
      await nextTurn()
      written.marks.add(key)
    },
    pttl: async () => -2
  } as unknown as RedisCommands
  const keyring = createKeyring(['a secret that replicas share'])
  const coordination = createRedisCoordination({
    async open(given) {
      events = given
      return { commands, info: async () => [], close: async () => {} }
    },
    prefix: '',
    keyring: {
      sealer(purpose) {
        const sealer = keyring.sealer(purpose)
        return {
          ...sealer,
          seal(plaintext, context) {
            if (purpose === 'shared results') sealed++
            return sealer.seal(plaintext, context)
          }
        }
      }
    },
    now: Date.now,
    log: (await collectLogs()).log,
    whenAway: 'wait',
    timing: { ...timingOf(10), commandMs: 20_000, settleMs: 0 }
  })
  t.teardown(() => coordination.close())
  await eventually(() => coordination.status().store === 'redis')
  return {
    coordination,
    written,
    /** @param after the number of published results after which Redis fails again */
    comeBack(after = goneAfter) {
      goneAfter = after
      sealed = 0
      written.results.clear()
      written.marks.clear()
      events?.onLost()
      events?.onReady()
    }
  }
}

async function fill({ coordination }: Awaited<ReturnType<typeof startStore>>, results: number, marks: number) {
  for (let n = 0; n < results; n++) await coordination.once(`key ${n}`, async () => ({ value: n, keepMs: KEEP_MS }))
  await Promise.all(Array.from({ length: marks }, (_, n) => coordination.mark(`mark ${n}`, KEEP_MS)))
}

test('results and marks are published again in batches, and each batch is encrypted only after the previous batch was written', async t => {
  const store = await startStore(t)
  await fill(store, 1050, 450)
  store.comeBack()
  await eventually(() => store.written.marks.size === 450)
  t.is(store.written.results.size, 1050)
  t.true(store.written.mostSealedAhead <= 200, `${store.written.mostSealedAhead} results were encrypted ahead`)
})

test('publishing stops if Redis fails again', async t => {
  const store = await startStore(t)
  await fill(store, 450, 1)
  store.comeBack(200)
  await eventually(() => store.coordination.status().store === 'away')
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  t.is(store.written.results.size, 200)
  t.is(store.written.marks.size, 0)
})
