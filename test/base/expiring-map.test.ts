import test from 'ava'
import fc from 'fast-check'
import { createExpiringMap } from '#src/base/expiring-map.js'
import { createClock } from '../helpers/clock.js'

test('a map with weights evicts its oldest entries until there is room, and keeps no entry that is heavier than the limit', t => {
  const map = createExpiringMap<string>(10, Date.now, value => value.length)
  const keys = () => [...map.entries()].map(([key]) => key)
  for (const key of ['aaaa', 'bbbb', 'cc']) map.set(key, key, 1000)
  t.is(map.get('aaaa'), 'aaaa', 'which does not make it newer')
  map.set('ddddd', 'ddddd', 1000)
  t.deepEqual(keys(), ['cc', 'ddddd'])
  map.set('cc', 'e'.repeat(11), 1000)
  t.deepEqual(keys(), ['ddddd'])
  map.set('ffffff', 'ffffff', 1000)
  map.set('gggg', 'gggg', 1000)
  t.deepEqual(keys(), ['ffffff', 'gggg'])
})

test('expired entries are not counted for long, also in a map without a limit and behind an older entry that lives longer', t => {
  const clock = createClock()
  const map = createExpiringMap<number>(Number.POSITIVE_INFINITY, clock.now)
  map.set('long', 0, 172_800_000)
  for (let n = 0; n < 100; n++) map.set(`old ${n}`, n, 1000)
  clock.advance(61_000)
  t.is(map.size, 1)
})

test('entries can be iterated while the map changes', t => {
  const map = createExpiringMap<number>(10, Date.now)
  for (const key of [1, 2, 3]) map.set(String(key), key, 1000)
  const seen: string[] = []
  for (const [key] of map.entries()) {
    seen.push(key)
    map.delete('2')
    if (key === '3') map.set('4', 4, 1000)
  }
  t.deepEqual(seen, ['1', '3', '4'])
})

test('if the clock moves in either direction, the map keeps its size limit and returns what has not expired', t => {
  const step = fc.record({
    key: fc.nat(30),
    ttlMs: fc.constantFrom(-5, 0, 100, 15_000, 60_000),
    pauseMs: fc.integer({ min: -30_000, max: 30_000 }),
    isDelete: fc.boolean()
  })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.array(step, { maxLength: 200 }), (most, steps) => {
      const clock = createClock()
      const map = createExpiringMap<number>(most, clock.now)
      const until = new Map<string, number>()
      const mayBeGone = new Set<string>()
      for (const [index, { key, ttlMs, pauseMs, isDelete }] of steps.entries()) {
        const name = String(key)
        until.delete(name)
        mayBeGone.delete(name)
        if (isDelete) map.delete(name)
        else {
          map.set(name, index, ttlMs)
          if (ttlMs > 0) until.set(name, clock.now() + ttlMs)
        }
        t.is(map.get(name), until.has(name) ? index : undefined)
        clock.advance(pauseMs)
        t.true(map.size <= most)
        for (const [shown] of map.entries()) t.true((until.get(shown) ?? 0) > clock.now())
        // What has expired once may come back while it is still in the map, if the clock is set back.
        for (const [shown, end] of until) if (end <= clock.now()) mayBeGone.add(shown)
        for (const [shown] of [...until].slice(0, -most)) mayBeGone.add(shown)
        for (const shown of until.keys()) if (!mayBeGone.has(shown)) t.not(map.get(shown), undefined)
      }
    })
  )
})
