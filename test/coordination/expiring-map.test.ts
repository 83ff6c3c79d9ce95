import test from 'ava'
import fc from 'fast-check'
import { createExpiringMap } from '#src/coordination/expiring-map.js'
import { createClock } from '../helpers/clock.js'

test('an entry is there until its time is over, and not at that moment', t => {
  const clock = createClock()
  const map = createExpiringMap<string>(10, clock.now)
  map.set('key', 'value', 1000)
  clock.advance(999)
  t.is(map.get('key'), 'value')
  clock.advance(1)
  t.is(map.get('key'), undefined)
})

test('setting a key again gives it the new value and the new time', t => {
  const clock = createClock()
  const map = createExpiringMap<string>(10, clock.now)
  map.set('key', 'old', 1000)
  clock.advance(500)
  map.set('key', 'new', 1000)
  clock.advance(999)
  t.is(map.get('key'), 'new')
  t.is(map.size, 1)
})

test('a deleted entry is gone at once', t => {
  const map = createExpiringMap<string>(10, () => 0)
  map.set('key', 'value', 1000)
  map.delete('key')
  t.is(map.get('key'), undefined)
  t.is(map.size, 0)
})

test('a full map lets go of its oldest entry', t => {
  const map = createExpiringMap<number>(3, () => 0)
  for (const key of [1, 2, 3, 4]) map.set(String(key), key, 1000)
  t.is(map.get('1'), undefined)
  t.deepEqual([map.get('2'), map.get('3'), map.get('4')], [2, 3, 4])
})

test('writing to a key makes it the newest', t => {
  const map = createExpiringMap<number>(2, () => 0)
  map.set('a', 1, 1000)
  map.set('b', 2, 1000)
  map.set('a', 3, 1000)
  map.set('c', 4, 1000)
  t.deepEqual([map.get('a'), map.get('b'), map.get('c')], [3, undefined, 4])
})

test('entries that ended make room by themselves as others come', t => {
  const clock = createClock()
  const map = createExpiringMap<number>(1000, clock.now)
  for (let n = 0; n < 100; n++) map.set(`old ${n}`, n, 1000)
  clock.advance(1000)
  for (let n = 0; n < 50; n++) map.set(`new ${n}`, n, 1000)
  t.is(map.size, 50)
})

test('whatever is written, the map stays within its size and never shows what has ended', t => {
  const writes = fc.array(
    fc.record({ key: fc.nat(30), ttlMs: fc.nat(100), pauseMs: fc.nat(50), remove: fc.boolean() }),
    { maxLength: 200 }
  )
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), writes, (most, steps) => {
      const clock = createClock(0)
      const map = createExpiringMap<number>(most, clock.now)
      const until = new Map<string, number>()
      for (const [index, { key, ttlMs, pauseMs, remove }] of steps.entries()) {
        const name = String(key)
        if (remove) map.delete(name)
        else map.set(name, index, ttlMs)
        until.set(name, remove ? 0 : clock.now() + ttlMs)
        clock.advance(pauseMs)
        if (map.size > most) return false
        if (map.get(name) !== undefined && (until.get(name) as number) <= clock.now()) return false
      }
      return [...until].every(([name, end]) => end > clock.now() || map.get(name) === undefined)
    })
  )
  t.pass()
})
