import { REJECTED, type ValueType } from './value-type.js'

// The types of durations and sizes. Operators write a unit, as in 24h or 100MB, and the code has a number of seconds or bytes.

export const MINUTE = 60
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
export const MIB = 1024 ** 2
export const GIB = 1024 ** 3

/** The names of the units with their sizes, from the largest to the smallest. */
type Units = readonly (readonly [name: string, size: number])[]

const DURATIONS: Units = [
  ['d', DAY],
  ['h', HOUR],
  ['m', MINUTE],
  ['s', 1]
]
const SIZES: Units = [
  ['GiB', GIB],
  ['GB', 1000 ** 3],
  ['MiB', MIB],
  ['MB', 1000 ** 2],
  ['KiB', 1024],
  ['kB', 1000],
  ['B', 1]
]

/** A type whose value is a number of seconds or bytes. */
type Quantity<Unit extends 'Seconds' | 'Bytes'> = ValueType<number, number | string> & { readonly unit: Unit }

/**
 * The type of a duration such as 90s, 1h30m or 30d. A bare number is a number of seconds, and so is the value.
 * @param minimum the shortest allowed duration in seconds
 * @param maximum the longest allowed duration in seconds
 */
export function duration(minimum: number, maximum: number): Quantity<'Seconds'> {
  return quantity('Seconds', 'a duration such as 90s or 24h', DURATIONS, minimum, maximum)
}

/** The type of a size such as 100MB or 64KiB. A bare number is a number of bytes, and so are the limits and the value. */
export function size(minimum: number, maximum: number): Quantity<'Bytes'> {
  return quantity('Bytes', 'a size such as 64KiB or 100MB', SIZES, minimum, maximum)
}

function quantity<Unit extends 'Seconds' | 'Bytes'>(
  unit: Unit,
  noun: string,
  units: Units,
  minimum: number,
  maximum: number
): Quantity<Unit> {
  const write = (value: number) => written(value, units)
  const pattern = `^(\\d+|(\\d+(${units.map(([name]) => inAnyCase(name)).join('|')}))+)$`
  return {
    unit,
    allowed: `${noun}, from ${write(minimum)} to ${write(maximum)}`,
    json: { type: ['string', 'integer'], pattern, minimum, maximum },
    parse(given) {
      const value = typeof given === 'string' ? numberOf(given, units) : given
      const isAllowed = typeof value === 'number' && Number.isInteger(value) && value >= minimum && value <= maximum
      return isAllowed ? { value } : REJECTED
    },
    write
  }
}

/** Returns the number of seconds or bytes, or undefined if the string is no quantity. The case of a unit does not matter. */
function numberOf(string: string, units: Units): number | undefined {
  if (/^\d+$/.test(string)) return Number(string)
  if (!/^(\d+[a-z]+)+$/i.test(string)) return undefined
  const parts = [...string.matchAll(/(\d+)([a-z]+)/gi)].map(([, count, name = '']) => {
    const unit = units.find(([known]) => known.toLowerCase() === name.toLowerCase())
    return Number(count) * (unit?.[1] ?? Number.NaN)
  })
  return parts.reduce((sum, part) => sum + part, 0)
}

/** Returns the pattern of a unit. A pattern of JSON Schema cannot ignore the case. */
function inAnyCase(name: string): string {
  return name.replace(/[a-z]/gi, letter => `[${letter.toLowerCase()}${letter.toUpperCase()}]`)
}

/** Writes a value with its largest unit, but not as one of that unit, because 24h is more common than 1d. */
function written(value: number, units: Units): string {
  const [name, size] = units.find(([, size]) => value > size && value % size === 0) ?? (units.at(-1) as Units[number])
  return `${value / size}${name}`
}
