import type * as valibot from 'valibot'

/**
 * The general kinds of value a setting can have. A kind knows four things about itself: what a person is told is
 * allowed, what an editor is told, how text becomes such a value, and the schema that decides.
 *
 * valibot comes in as an argument, so `--help`, which only reads the sentences, does not load it.
 */
export interface ValueType<Value> {
  /** Completes "allowed: ...". */
  readonly allowed: string
  readonly json: JsonSchema
  /**
   * A flag's or variable's text as what a file would hold. Text that cannot be one stays text, and the schema refuses
   * it.
   */
  readonly fromText: (text: string) => unknown
  /** A `check` in it carries the reason of the refusal as its message; everything else is explained by `allowed`. */
  readonly schema: (v: Valibot) => valibot.GenericSchema<unknown, Value>
  /** How a text may be shown, for instance an address without its password. A secret without it is never shown. */
  readonly mask?: (text: string) => string
  /** The flag may be given more than once, and each one adds to the list. */
  readonly isRepeatable?: true
  /** Items that a new settings file shows in a comment. */
  readonly sample?: readonly string[]
}

export type Valibot = typeof valibot
export type JsonSchema = { readonly [keyword: string]: unknown }

export function oneOf<const Options extends readonly [string, string, ...string[]]>(
  ...options: Options
): ValueType<Options[number]> {
  return {
    allowed: `${options.slice(0, -1).join(', ')} or ${options.at(-1)}`,
    json: { enum: options },
    fromText: asText,
    schema: v => v.picklist(options)
  }
}

export const yesOrNo: ValueType<boolean> = {
  allowed: 'true or false',
  json: { type: 'boolean' },
  fromText: text => words.get(text.toLowerCase()) ?? text,
  schema: v => v.boolean()
}

const words = new Map([
  ...['true', 'yes', 'on', '1'].map(word => [word, true] as const),
  ...['false', 'no', 'off', '0'].map(word => [word, false] as const)
])

export function integer(minimum: number, maximum: number, noun = 'a whole number'): ValueType<number> {
  return {
    allowed: `${noun} from ${minimum} to ${maximum}`,
    json: { type: 'integer', minimum, maximum },
    // Number() would also take '', ' 1', 0x1F and 1e3.
    fromText: text => (/^-?\d+$/.test(text) ? Number(text) : text),
    schema: v => v.pipe(v.number(), v.integer(), v.minValue(minimum), v.maxValue(maximum))
  }
}

/** 0 asks the system for any free port. */
export const port = integer(0, 65535, 'a port number')

export function seconds(minimum: number, maximum: number): ValueType<number> {
  return integer(minimum, maximum, 'a whole number of seconds')
}

export function text(allowed: string, pattern: RegExp): ValueType<string> {
  return {
    allowed,
    json: { type: 'string', pattern: pattern.source },
    fromText: asText,
    schema: v => v.pipe(v.string(), v.regex(pattern))
  }
}

/** A list given as text with white space between its items, or in a file as an array. */
export function list(allowed: string, item: RegExp): ValueType<readonly string[]> {
  return {
    allowed,
    json: { type: ['string', 'array'], items: { type: 'string', pattern: item.source }, minItems: 1 },
    fromText: asText,
    schema: v =>
      v.pipe(
        stringOrStrings(v),
        v.nonEmpty(),
        v.everyItem(word => item.test(word))
      )
  }
}

export function stringOrStrings(v: Valibot) {
  return v.union([
    v.array(v.string()),
    v.pipe(
      v.string(),
      v.transform(text => text.split(/\s+/).filter(word => word !== ''))
    )
  ])
}

export function asText(text: string): string {
  return text
}
