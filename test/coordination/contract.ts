// Tests that every coordination store must pass. The test file of each store calls this once with its own factory.
// A store runs a piece of work once for all callers that use the same key, keeps its result, and keeps marks (named flags).
import { setTimeout as pause } from 'node:timers/promises'
import test, { type ExecutionContext, type Implementation } from 'ava'
import type { Coordination, Run, Settled } from '#src/coordination/coordination.js'

export interface StoreUnderTest {
  /** At least one replica of the same store. A store that several processes share gives several replicas. */
  readonly replicas: readonly [Coordination, ...Coordination[]]
  /** Lets `ms` milliseconds pass. Moves the clock of the store if it has one, and otherwise waits in real time. */
  pass(ms: number): Promise<void>
}

/**
 * @param createStore creates an empty store for one test and closes it when the test ends
 * @param declare declares a test. It may skip the test if a program that the store needs is not installed.
 */
export function coordinationContract(
  storeName: string,
  createStore: (t: ExecutionContext) => Promise<StoreUnderTest>,
  declare: (title: string, implementation: Implementation<[]>) => void = test
): void {
  // `longMs` does not end during a test, even on a slow machine. `shortMs` is short enough to wait for in real time.
  const longMs = 60_000
  const shortMs = 250

  const promises = (behaviour: string, implementation: (t: ExecutionContext, store: StoreUnderTest) => Promise<void>) =>
    declare(`${storeName}: ${behaviour}`, async t => implementation(t, await createStore(t)))

  promises('work that fifty callers request at once runs once, and all get its value', async (t, { replicas }) => {
    const work = countedWork({ tokens: ['a', 'b'], left: null }, longMs)
    const asked = Array.from({ length: 50 }, (_, index) => at(replicas, index).once('key', work.run))
    const answers = await Promise.all(asked)
    t.is(work.runs, 1)
    t.is(answers.filter(({ how }) => how === 'ran').length, 1)
    for (const { value } of answers) t.deepEqual(value, { tokens: ['a', 'b'], left: null })
  })

  promises('a caller that comes while the work is running gets the result of that run', async (t, { replicas }) => {
    const { gate, open } = createGate()
    const slow = countedWork('value', longMs, gate)
    const never = countedWork('other', longMs)
    const first = replicas[0].once('key', slow.run)
    await slow.started
    const second = replicas[0].once('key', never.run)
    open()
    t.deepEqual(await first, { value: 'value', how: 'ran' })
    t.deepEqual(await second, { value: 'value', how: 'joined' })
    t.is(never.runs, 0)
  })

  promises('work under one key does not wait for work under another key', async (t, { replicas }) => {
    const { gate, open } = createGate()
    const slow = countedWork('slow', longMs, gate)
    const first = replicas[0].once('one', slow.run)
    await slow.started
    t.deepEqual(await at(replicas, 1).once('two', countedWork('quick', longMs).run), { value: 'quick', how: 'ran' })
    open()
    t.is((await first).value, 'slow')
  })

  promises('later callers get the kept result, and the work does not run again', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    const again = countedWork({ n: 2 }, longMs)
    for (const replica of replicas) t.deepEqual(await replica.once('key', again.run), { value: { n: 1 }, how: 'kept' })
    t.is(again.runs, 0)
  })

  promises('a result is removed when its time is over, and the work then runs again', async (t, { replicas, pass }) => {
    await replicas[0].once('key', countedWork(1, shortMs).run)
    await pass(shortMs + 50)
    t.is(await at(replicas, 1).peek('key'), undefined)
    t.deepEqual(await at(replicas, 1).once('key', countedWork(2, longMs).run), { value: 2, how: 'ran' })
  })

  promises('a result may be null, false, zero or empty', async (t, { replicas }) => {
    for (const value of [null, false, 0, '', [], {}]) {
      const key = `key ${JSON.stringify(value)}`
      t.deepEqual(await replicas[0].once(key, countedWork<unknown>(value, longMs).run), { value, how: 'ran' })
      const again = countedWork<unknown>('other', longMs)
      t.deepEqual(await at(replicas, 1).once(key, again.run), { value, how: 'kept' })
      t.deepEqual(await replicas[0].peek(key), value)
    }
  })

  promises('if the work fails, all waiting callers get the error, and no result is kept', async (t, { replicas }) => {
    const failure = new TypeError('no luck')
    const { gate, open } = createGate()
    const failing = countedWork('never', longMs, gate, failure)
    const first = t.throwsAsync(replicas[0].once('key', failing.run))
    await failing.started
    const second = t.throwsAsync(replicas[0].once('key', failing.run))
    open()
    t.deepEqual(await Promise.all([first, second]), [failure, failure])
    t.is(failing.runs, 1)
    t.is(await replicas[0].peek('key'), undefined)
    t.deepEqual(await at(replicas, 1).once('key', countedWork('luck', longMs).run), { value: 'luck', how: 'ran' })
  })

  promises('if the work throws synchronously, the caller gets the error', async (t, { replicas }) => {
    const failure = new TypeError('at once')
    const work = () => {
      throw failure
    }
    t.is(await t.throwsAsync(replicas[0].once('key', work)), failure)
    t.is((await replicas[0].once('key', countedWork(1, longMs).run)).how, 'ran')
  })

  promises('if a caller does not accept the kept result, a new run replaces it', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    const seen: unknown[] = []
    const refuse = (kept: { n: number }) => {
      seen.push(kept)
      return false
    }
    const last = at(replicas, 1)
    t.deepEqual(await last.once('key', countedWork({ n: 2 }, longMs).run, { accept: refuse }), {
      value: { n: 2 },
      how: 'ran'
    })
    t.deepEqual(seen[0], { n: 1 })
    const accept = ({ n }: { n: number }) => n === 2
    for (const replica of replicas) {
      t.deepEqual(await replica.once('key', countedWork({ n: 3 }, longMs).run, { accept }), {
        value: { n: 2 },
        how: 'kept'
      })
    }
  })

  promises('if twenty callers do not accept the kept result, the work runs again once', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    const work = countedWork({ n: 2 }, longMs)
    const asked = Array.from({ length: 20 }, (_, index) =>
      at(replicas, index).once('key', work.run, { accept: ({ n }: { n: number }) => n === 2 })
    )
    for (const { value } of await Promise.all(asked)) t.deepEqual(value, { n: 2 })
    t.is(work.runs, 1)
  })

  promises('peek() returns the kept result and does not run any work', async (t, { replicas }) => {
    t.is(await replicas[0].peek('key'), undefined)
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    for (const replica of replicas) t.deepEqual(await replica.peek('key'), { n: 1 })
  })

  promises('peek() does not wait for running work', async (t, { replicas }) => {
    const { gate, open } = createGate()
    const work = countedWork({ n: 1 }, longMs, gate)
    const first = replicas[0].once('key', work.run)
    await work.started
    for (const replica of replicas) t.is(await replica.peek('key'), undefined)
    open()
    await first
    for (const replica of replicas) t.deepEqual(await replica.peek('key'), { n: 1 })
  })

  promises('the work gets the kept result that the caller did not accept', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    const seen: unknown[] = []
    const work = async (run: Run<unknown>) => {
      seen.push(run.previous)
      return { value: { n: 2 }, keepMs: longMs }
    }
    await at(replicas, 1).once('key', work, { accept: () => false })
    await replicas[0].once('other', work)
    t.deepEqual(seen, [{ n: 1 }, undefined])
  })

  promises('update() replaces the kept result for every replica', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    t.deepEqual(await at(replicas, 1).update<{ n: number }>('key', ({ n }) => ({ n: n + 1 })), { n: 2 })
    for (const replica of replicas) {
      t.deepEqual(await replica.peek('key'), { n: 2 })
      t.deepEqual(await replica.once('key', countedWork({ n: 9 }, longMs).run), { value: { n: 2 }, how: 'kept' })
    }
  })

  promises('update() keeps and returns the old result if its function returns undefined', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    t.deepEqual(await at(replicas, 1).update('key', () => undefined), { n: 1 })
    t.deepEqual(await replicas[0].peek('key'), { n: 1 })
  })

  promises('update() does not create a result if none is kept', async (t, { replicas }) => {
    t.is(await replicas[0].update('key', () => ({ n: 1 })), undefined)
    t.is(await at(replicas, 1).peek('key'), undefined)
  })

  promises('simultaneous calls of update() do not lose a change', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 0 }, longMs).run)
    const increment = ({ n }: { n: number }) => ({ n: n + 1 })
    await Promise.all(Array.from({ length: 8 }, (_, index) => at(replicas, index).update('key', increment)))
    t.deepEqual(await replicas[0].peek('key'), { n: 8 })
  })

  promises('update() does not change the time at which the result is removed', async (t, { replicas, pass }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, 4 * shortMs).run)
    await pass(2 * shortMs)
    await at(replicas, 1).update<{ n: number }>('key', () => ({ n: 2 }))
    await pass(2 * shortMs + 50)
    for (const replica of replicas) t.is(await replica.peek('key'), undefined)
  })

  promises('confirm() shortens the life of a result to the given time', async (t, store) => {
    const { replicas, pass } = store
    for (const replica of replicas) await replica.isMarked('warm')
    await replicas[0].once('confirmed', countedWork(1, longMs).run)
    await replicas[0].once('unconfirmed', countedWork(2, longMs).run)
    at(replicas, 1).confirm('confirmed', shortMs)
    for (let asked = 0; asked < 100 && (await at(replicas, 1).peek('confirmed')) !== undefined; asked++) await pass(50)
    t.is(await at(replicas, 1).peek('confirmed'), undefined)
    t.is(await at(replicas, 1).peek('unconfirmed'), 2)
  })

  promises('a second confirm() does not extend the life of a result', async (t, { replicas, pass }) => {
    for (const replica of replicas) await replica.isMarked('warm')
    await replicas[0].once('key', countedWork(1, longMs).run)
    at(replicas, 1).confirm('key', shortMs)
    at(replicas, 1).confirm('key', longMs)
    for (let asked = 0; asked < 100 && (await at(replicas, 1).peek('key')) !== undefined; asked++) await pass(50)
    t.is(await at(replicas, 1).peek('key'), undefined)
  })

  promises('a pause reaches every replica, and ends earlier for urgent calls', async (t, { replicas, pass }) => {
    for (const replica of replicas) t.is(replica.pausedMs(), 0)
    // A replica that is still connecting misses the first messages, so the message is sent until the replica has it.
    for (const replica of replicas) {
      while (replica.pausedMs() === 0) {
        replicas[0].pauseCalls(20 * shortMs)
        await pause(5)
      }
    }
    for (const replica of replicas) {
      const [all, urgent] = [replica.pausedMs(), replica.pausedMs({ isUrgent: true })]
      t.true(urgent > 0 && Math.abs(all - urgent - 1000) < 100, `${all} and ${urgent} ms`)
    }
    for (const replica of replicas) while (replica.pausedMs() > 0) await pass(100)
    for (const replica of replicas) t.is(replica.pausedMs({ isUrgent: true }), 0)
  })

  promises('a mark that is set for everyone reaches the memory of every replica', async (t, { replicas }) => {
    // A replica that is still connecting misses the first messages, so the mark is set until the replica has it.
    for (const replica of replicas) {
      while (!replica.isMarkedHere('logout:id')) await replicas[0].mark('logout:id', longMs, 'everyone')
    }
    t.false(replicas[0].isMarkedHere('logout:other'))
  })

  promises('idle() resolves when no work is running in the process', async (t, { replicas }) => {
    await replicas[0].idle()
    const { gate, open } = createGate()
    const work = countedWork(1, longMs, gate)
    const first = replicas[0].once('key', work.run)
    await work.started
    let isIdle = false
    const idle = replicas[0].idle().then(() => {
      isIdle = true
    })
    await new Promise(resolve => setImmediate(resolve))
    t.false(isIdle)
    open()
    await Promise.all([first, idle])
  })

  promises('every replica sees a mark under its key, and under no other key', async (t, { replicas }) => {
    t.false(await replicas[0].isMarked('key'))
    await replicas[0].mark('key', longMs)
    for (const replica of replicas) {
      t.true(await replica.isMarked('key'))
      t.false(await replica.isMarked('other key'))
    }
  })

  promises('a mark is removed after its time, and setting it again extends it', async (t, { replicas, pass }) => {
    await replicas[0].mark('short', shortMs)
    await replicas[0].mark('extended', shortMs)
    await at(replicas, 1).mark('extended', longMs)
    await pass(shortMs + 50)
    t.false(await at(replicas, 1).isMarked('short'))
    t.true(await replicas[0].isMarked('extended'))
  })

  promises('a mark and a result with the same key are independent', async (t, { replicas }) => {
    await replicas[0].mark('marked', longMs)
    t.is(await replicas[0].peek('marked'), undefined)
    t.is((await replicas[0].once('marked', countedWork(1, longMs).run)).how, 'ran')
    await replicas[0].once('done', countedWork(1, longMs).run)
    t.false(await replicas[0].isMarked('done'))
  })

  promises('running work may set and read marks, even under its own key', async (t, { replicas }) => {
    const { value } = await replicas[0].once('key', async () => {
      await replicas[0].mark('key', longMs)
      return { value: await replicas[0].isMarked('key'), keepMs: longMs }
    })
    t.true(value)
  })
}

interface CountedWork<T> {
  readonly run: () => Promise<Settled<T>>
  /** Resolves when the work has started. */
  readonly started: Promise<void>
  readonly runs: number
}

function countedWork<T>(value: T, keepMs: number, gate?: Promise<void>, failure?: Error): CountedWork<T> {
  const { gate: started, open: start } = createGate()
  let runs = 0
  return {
    started,
    get runs() {
      return runs
    },
    async run() {
      runs++
      start()
      await gate
      if (failure) throw failure
      return { value, keepMs }
    }
  }
}

function createGate() {
  let open = () => {}
  const gate = new Promise<void>(resolve => {
    open = resolve
  })
  return { gate, open }
}

function at(replicas: StoreUnderTest['replicas'], index: number): Coordination {
  return replicas[index % replicas.length] ?? replicas[0]
}
