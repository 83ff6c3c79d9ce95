import test from 'ava'
import { duration, size } from '#src/config/types/units.js'

const DAY = 86_400

test('a number is a number of seconds or bytes', t => {
  t.deepEqual(duration(0, DAY).parse(90), { value: 90 })
  t.deepEqual(size(0, 10_000).parse(2048), { value: 2048 })
})

test('an editor accepts a quantity exactly if the server does', t => {
  const [time, length] = [duration(0, 400 * DAY), size(0, 2 ** 40)]
  for (const text of '0,90,90s,15m,24H,30d,1h30m,168h0m0s,,m,1 h,1.5h,-1s,1w,10ms,1h30,1e3,0x10,100mib,soon'.split(','))
    for (const { parse, json } of [time, length])
      t.is('value' in parse(text), new RegExp(String(json.pattern)).test(text), text)
})

test('a value is written with the largest unit of which it is a multiple', t => {
  const { write } = duration(0, 400 * DAY)
  t.deepEqual(
    [0, 1, 60, 61, 90, 1500, DAY, 2 * DAY].map(value => write?.(value)),
    ['0s', '1s', '60s', '61s', '90s', '25m', '24h', '2d']
  )
  t.deepEqual(
    [1, 1000, 65_536, 104_857_600, 100_000_000].map(value => size(0, 2 ** 40).write?.(value)),
    ['1B', '1000B', '64KiB', '100MiB', '100MB']
  )
})

test('the limits belong to the allowed values, and messages name them', t => {
  const { parse, allowed } = duration(1, 300)
  t.deepEqual([parse('1s'), parse('5m')], [{ value: 1 }, { value: 300 }])
  for (const outside of [0, '0s', 301, '301s', '1h']) t.false('value' in parse(outside), String(outside))
  t.is(allowed, 'a duration such as 90s or 24h, from 1s to 5m')
})
