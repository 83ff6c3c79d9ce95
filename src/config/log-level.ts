import { REJECTED, type ValueType } from './types.js'

/** The levels of pino with their numbers, which pino writes into the JSON lines. */
const numbers = { fatal: 60, error: 50, warn: 40, info: 30, debug: 20, trace: 10 } as const

type LogLevel = keyof typeof numbers | 'silent'

const names: readonly LogLevel[] = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/** The type of `log.level`: the name of a level of pino, or its number. The value is the name. */
export const logLevel: ValueType<LogLevel> = {
  allowed: `${Object.entries(numbers)
    .map(([name, number]) => `${name} (${number})`)
    .join(', ')} or silent`,
  json: { enum: [...names, ...Object.values(numbers)] },
  parse(written) {
    if (typeof written !== 'string' && typeof written !== 'number') return REJECTED
    const value = names.find(
      name => name === written || (name !== 'silent' && String(numbers[name]) === String(written))
    )
    return value === undefined ? REJECTED : { value }
  }
}
