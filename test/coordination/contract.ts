// What every coordination store promises, whoever keeps it. Each store's test file calls this once with its own factory.
import test, { type ExecutionContext, type Implementation } from 'ava'
import type { Coordination, Settled } from '#src/coordination/coordination.js'

export interface StoreUnderTest {
  /** The same store as its replicas see it, at least one; a store that several processes share gives several. */
  readonly replicas: readonly [Coordination, ...Coordination[]]
  /** Lets that much time pass: moves a clock where the store takes one, and truly waits where it does not. */
  pass(ms: number): Promise<void>
}

/**
 * @param createStore an empty store for one test, which it closes when the test ends.
 * @param declare how a test is declared where the store needs something that may not be installed
 */
export function coordinationContract(
  storeName: string,
  createStore: (t: ExecutionContext) => Promise<StoreUnderTest>,
  declare: (title: string, implementation: Implementation<[]>) => void = test
): void {
  // Long enough for the slowest machine, and short enough to wait for where no clock can be moved.
  const longMs = 60_000
  const shortMs = 250

  const promises = (behaviour: string, implementation: (t: ExecutionContext, store: StoreUnderTest) => Promise<void>) =>
    declare(`${storeName}: ${behaviour}`, async t => implementation(t, await createStore(t)))

  promises('work that many ask for at once is done once, and all get its value', async (t, { replicas }) => {
    const work = countedWork({ tokens: ['a', 'b'], left: null }, longMs)
    const asked = Array.from({ length: 50 }, (_, index) => at(replicas, index).once('key', work.run))
    const answers = await Promise.all(asked)
    t.is(work.runs, 1)
    t.is(answers.filter(({ how }) => how === 'ran').length, 1)
    for (const { value } of answers) t.deepEqual(value, { tokens: ['a', 'b'], left: null })
  })

  promises('who comes while the work is under way joins it', async (t, { replicas }) => {
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

  promises('work under other keys does not wait', async (t, { replicas }) => {
    const { gate, open } = createGate()
    const slow = countedWork('slow', longMs, gate)
    const first = replicas[0].once('one', slow.run)
    await slow.started
    t.deepEqual(await at(replicas, 1).once('two', countedWork('quick', longMs).run), { value: 'quick', how: 'ran' })
    open()
    t.is((await first).value, 'slow')
  })

  promises('a result is given to later askers instead of doing the work again', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    const again = countedWork({ n: 2 }, longMs)
    for (const replica of replicas) t.deepEqual(await replica.once('key', again.run), { value: { n: 1 }, how: 'kept' })
    t.is(again.runs, 0)
  })

  promises('a result is forgotten after its time', async (t, { replicas, pass }) => {
    await replicas[0].once('key', countedWork(1, shortMs).run)
    await pass(shortMs + 50)
    t.is(await at(replicas, 1).result('key'), undefined)
    t.deepEqual(await at(replicas, 1).once('key', countedWork(2, longMs).run), { value: 2, how: 'ran' })
  })

  promises('a result that is kept for no time goes to those who wait and to nobody else', async (t, { replicas }) => {
    const { gate, open } = createGate()
    const work = countedWork('once', 0, gate)
    const first = replicas[0].once('key', work.run)
    await work.started
    const second = replicas[0].once('key', work.run)
    open()
    t.deepEqual(await Promise.all([first, second]), [
      { value: 'once', how: 'ran' },
      { value: 'once', how: 'joined' }
    ])
    t.is(await replicas[0].result('key'), undefined)
    t.deepEqual(await at(replicas, 1).once('key', countedWork('twice', longMs).run), { value: 'twice', how: 'ran' })
  })

  promises('a value may be null, false, zero or empty', async (t, { replicas }) => {
    for (const value of [null, false, 0, '', [], {}]) {
      const key = `key ${JSON.stringify(value)}`
      t.deepEqual(await replicas[0].once(key, countedWork<unknown>(value, longMs).run), { value, how: 'ran' })
      const again = countedWork<unknown>('other', longMs)
      t.deepEqual(await at(replicas, 1).once(key, again.run), { value, how: 'kept' })
      t.deepEqual(await replicas[0].result(key), value)
    }
  })

  promises('a failure reaches all who wait, and nothing is kept of it', async (t, { replicas }) => {
    const failure = new TypeError('no luck')
    const { gate, open } = createGate()
    const failing = countedWork('never', longMs, gate, failure)
    const first = t.throwsAsync(replicas[0].once('key', failing.run))
    await failing.started
    const second = t.throwsAsync(replicas[0].once('key', failing.run))
    open()
    t.deepEqual(await Promise.all([first, second]), [failure, failure])
    t.is(failing.runs, 1)
    t.is(await replicas[0].result('key'), undefined)
    t.deepEqual(await at(replicas, 1).once('key', countedWork('luck', longMs).run), { value: 'luck', how: 'ran' })
  })

  promises('work that throws before it has begun to wait is a failure like any other', async (t, { replicas }) => {
    const failure = new TypeError('at once')
    const work = () => {
      throw failure
    }
    t.is(await t.throwsAsync(replicas[0].once('key', work)), failure)
    t.is((await replicas[0].once('key', countedWork(1, longMs).run)).how, 'ran')
  })

  promises('a kept result that the asker refuses is made again and replaced', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    const seen: unknown[] = []
    const refuse = (kept: { n: number }) => {
      seen.push(kept)
      return false
    }
    const last = at(replicas, 1)
    t.deepEqual(await last.once('key', countedWork({ n: 2 }, longMs).run, refuse), { value: { n: 2 }, how: 'ran' })
    t.deepEqual(seen[0], { n: 1 })
    const accept = ({ n }: { n: number }) => n === 2
    for (const replica of replicas) {
      t.deepEqual(await replica.once('key', countedWork({ n: 3 }, longMs).run, accept), {
        value: { n: 2 },
        how: 'kept'
      })
    }
  })

  promises('many who refuse a kept result have it made again once', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    const work = countedWork({ n: 2 }, longMs)
    const asked = Array.from({ length: 20 }, (_, index) =>
      at(replicas, index).once('key', work.run, ({ n }: { n: number }) => n === 2)
    )
    for (const { value } of await Promise.all(asked)) t.deepEqual(value, { n: 2 })
    t.is(work.runs, 1)
  })

  promises('a refused result is gone when its replacement is kept for no time', async (t, { replicas }) => {
    await replicas[0].once('key', countedWork(1, longMs).run)
    await replicas[0].once('key', countedWork(2, 0).run, () => false)
    t.is(await at(replicas, 1).result('key'), undefined)
  })

  promises('a result can be looked at without asking for the work', async (t, { replicas }) => {
    t.is(await replicas[0].result('key'), undefined)
    await replicas[0].once('key', countedWork({ n: 1 }, longMs).run)
    for (const replica of replicas) t.deepEqual(await replica.result('key'), { n: 1 })
  })

  promises('looking at a result waits for work that is under way', async (t, { replicas }) => {
    const { gate, open } = createGate()
    const work = countedWork({ n: 1 }, longMs, gate)
    const first = replicas[0].once('key', work.run)
    await work.started
    let seen = 0
    const looks = replicas.map(async replica => {
      const result = await replica.result('key')
      seen++
      return result
    })
    await new Promise(resolve => setTimeout(resolve, 20))
    t.is(seen, 0)
    open()
    await first
    for (const result of await Promise.all(looks)) t.deepEqual(result, { n: 1 })
  })

  promises('looking at work that fails shows nothing, and throws nothing', async (t, { replicas }) => {
    const { gate, open } = createGate()
    const failing = countedWork('never', longMs, gate, new Error('no luck'))
    const first = t.throwsAsync(replicas[0].once('key', failing.run))
    await failing.started
    const looks = replicas.map(replica => replica.result('key'))
    open()
    await first
    t.deepEqual(
      await Promise.all(looks),
      replicas.map(() => undefined)
    )
  })

  promises('a mark is seen by everyone, and only under its own key', async (t, { replicas }) => {
    t.false(await replicas[0].isMarked('key'))
    await replicas[0].mark('key', longMs)
    for (const replica of replicas) {
      t.true(await replica.isMarked('key'))
      t.false(await replica.isMarked('other key'))
    }
  })

  promises('a mark ends after its time, and marking again gives it a new one', async (t, { replicas, pass }) => {
    await replicas[0].mark('short', shortMs)
    await replicas[0].mark('renewed', shortMs)
    await at(replicas, 1).mark('renewed', longMs)
    await pass(shortMs + 50)
    t.false(await at(replicas, 1).isMarked('short'))
    t.true(await replicas[0].isMarked('renewed'))
  })

  promises('a mark is no result, and a result is no mark', async (t, { replicas }) => {
    await replicas[0].mark('marked', longMs)
    t.is(await replicas[0].result('marked'), undefined)
    t.is((await replicas[0].once('marked', countedWork(1, longMs).run)).how, 'ran')
    await replicas[0].once('done', countedWork(1, longMs).run)
    t.false(await replicas[0].isMarked('done'))
  })

  promises('work may mark and look up marks itself', async (t, { replicas }) => {
    const { value } = await replicas[0].once('key', async () => {
      await replicas[0].mark('key', longMs)
      return { value: await replicas[0].isMarked('key'), keepMs: longMs }
    })
    t.true(value)
  })
}

interface CountedWork<T> {
  readonly run: () => Promise<Settled<T>>
  /** Resolves when the work has begun. */
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
