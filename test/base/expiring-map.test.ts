import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import test from 'ava'
import fc from 'fast-check'
import { createExpiringMap } from '#src/base/expiring-map.js'
import { createClock } from '../helpers/clock.js'
import { eventually } from '../helpers/eventually.js'

test('a map with weights evicts its oldest entries until there is room, and keeps no entry that is heavier than the limit', t => {
  const map = createExpiringMap<string>(
    10,
    () => 0,
    value => value.length
  )
  const keys = () => [...map.entries()].map(([key]) => key)
  for (const key of ['aaaa', 'bbbb', 'cc']) map.set(key, key, 1000)
  map.set('ddddd', 'ddddd', 1000)
  t.deepEqual(keys(), ['cc', 'ddddd'])
  map.set('cc', 'e'.repeat(11), 1000)
  t.deepEqual(keys(), ['ddddd'])
  map.set('ffffff', 'ffffff', 1000)
  map.set('gggg', 'gggg', 1000)
  t.deepEqual(keys(), ['ffffff', 'gggg'])
})

test('expired entries are removed when other entries are added, and are not counted, also behind an older entry that lives longer', t => {
  const clock = createClock()
  const map = createExpiringMap<number>(1000, clock.now)
  map.set('long', 0, 172_800_000)
  for (let n = 0; n < 100; n++) map.set(`old ${n}`, n, 1000)
  clock.advance(11_000)
  for (let n = 0; n < 50; n++) map.set(`new ${n}`, n, 1000)
  t.is(map.size, 51)
  for (let n = 0; n < 100; n++) map.set(`late ${n}`, n, 900_000)
  clock.advance(910_000)
  t.is(map.size, 1)
})

test('entries can be iterated while the map changes', t => {
  const map = createExpiringMap<number>(10, () => 0)
  for (const key of [1, 2, 3]) map.set(String(key), key, 1000)
  const seen: string[] = []
  for (const [key] of map.entries()) {
    seen.push(key)
    map.delete('2')
    if (key === '3') map.set('4', 4, 1000)
  }
  t.deepEqual(seen, ['1', '3', '4'])
})

interface Step {
  readonly key: number
  readonly ttlMs: number
  readonly pauseMs: number
  readonly action: 'set' | 'delete'
}

/** Steps that are mostly writes, with few keys and different lifetimes. */
function steps(pauseMs: fc.Arbitrary<number>): fc.Arbitrary<Step[]> {
  return fc.array(
    fc.record({
      key: fc.nat(30),
      ttlMs: fc.constantFrom(-5, 0, 100, 100, 15_000, 60_000),
      pauseMs,
      action: fc.constantFrom('set' as const, 'set' as const, 'set' as const, 'delete' as const)
    }),
    { maxLength: 200 }
  )
}

const tenSeconds = (ms: number) => Math.floor(ms / 10_000)

/** A map with the same behaviour that searches all its entries on each call. Entries that have just expired take room. */
function createNaiveMap(most: number, now: () => number) {
  let entries: { key: string; value: number; until: number }[] = []
  const alive = () => entries.filter(({ until }) => until > now())
  const kept = () => entries.filter(({ until }) => tenSeconds(until) >= tenSeconds(now()))
  return {
    delete(key: string) {
      entries = entries.filter(entry => entry.key !== key)
    },
    set(key: string, value: number, ttlMs: number) {
      entries = kept().filter(entry => entry.key !== key)
      if (ttlMs <= 0) return
      if (entries.length === most) entries.shift()
      entries.push({ key, value, until: now() + ttlMs })
    },
    entries: () => alive().map(({ key, value, until }) => [key, value, until - now()] as const)
  }
}

test('the map always contains the same entries as the naive map', t => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), steps(fc.oneof(fc.nat(50), fc.nat(20_000))), (most, written) => {
      const clock = createClock(0)
      const map = createExpiringMap<number>(most, clock.now)
      const naive = createNaiveMap(most, clock.now)
      for (const [index, { key, ttlMs, pauseMs, action }] of written.entries()) {
        for (const each of [map, naive]) {
          if (action === 'set') each.set(String(key), index, ttlMs)
          else each.delete(String(key))
        }
        t.deepEqual([...map.entries()], naive.entries())
        clock.advance(pauseMs)
        const left = naive.entries()
        t.deepEqual([...map.entries()], left)
        t.true(map.size <= most)
        t.is(map.get(String(key)), left.find(([name]) => name === String(key))?.[1])
      }
    })
  )
})

test('if the clock moves in either direction, the map keeps its size limit and returns no expired entry', t => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      steps(fc.oneof(fc.integer({ min: -200, max: 200 }), fc.integer({ min: -30_000, max: 30_000 }))),
      (most, written) => {
        const clock = createClock(0)
        const map = createExpiringMap<number>(most, clock.now)
        const until = new Map<string, number>()
        for (const [index, { key, ttlMs, pauseMs, action }] of written.entries()) {
          const name = String(key)
          if (action === 'set') map.set(name, index, ttlMs)
          else map.delete(name)
          until.set(name, action === 'set' ? clock.now() + ttlMs : Number.NEGATIVE_INFINITY)
          if (action === 'set' && ttlMs > 0) t.is(map.get(name), index)
          clock.advance(pauseMs)
          t.true(map.size <= most)
          for (const [shown, , leftMs] of map.entries()) t.is(leftMs, (until.get(shown) as number) - clock.now())
          for (const [shown, end] of until) if (end <= clock.now()) t.is(map.get(shown), undefined)
        }
      }
    )
  )
})

test('replaced values are not kept in memory', async t => {
  const map = createExpiringMap<object>(50_000, Date.now)
  let collected = 0
  const registry = new FinalizationRegistry(() => {
    collected += 1
  })
  const gc = setFlagsAndGetGc()
  for (let round = 0; round < 20; round++) {
    for (let key = 0; key < 200; key++) {
      const value = {}
      registry.register(value, undefined)
      map.set(String(key), value, 60_000)
    }
  }
  await eventually(() => {
    gc()
    return collected >= 3000
  })
  // The registry must still be used here. Otherwise it may be collected itself, and then it calls nothing.
  registry.unregister(map)
  t.is(map.size, 200)
})

function setFlagsAndGetGc(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}
