import type * as valibot from 'valibot'

/**
 * The type of a setting. It describes the allowed values for people and for editors, parses text, and validates values.
 *
 * valibot is passed as an argument, so that `--help` need not load it.
 */
export interface ValueType<Value> {
  /** The allowed values, as text after "allowed: ". */
  readonly allowed: string
  readonly json: JsonSchema
  /**
   * Parses the text of a flag or variable into the value that a file would contain. Invalid text is returned unchanged, and
   * the schema refuses it.
   */
  readonly fromText: (text: string) => unknown
  /** If a `check` fails, its message becomes part of our message. For other failures, our message contains only `allowed`. */
  readonly schema: (v: Valibot) => valibot.GenericSchema<unknown, Value>
  /** Removes the secret part of a text, such as the password in an address. A secret without `mask` is never shown. */
  readonly mask?: (text: string) => string
  /** True if the flag may be given more than once. Each occurrence adds items to the list. */
  readonly isRepeatable?: true
  /** Example items for a comment in a new settings file. */
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
    // Number() would also accept '', ' 1', 0x1F and 1e3.
    fromText: text => (/^-?\d+$/.test(text) ? Number(text) : text),
    schema: v => v.pipe(v.number(), v.integer(), v.minValue(minimum), v.maxValue(maximum))
  }
}

/** With port 0, the system chooses a free port. */
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

/** The type of a list. In a text, its items are separated by white space. In a settings file, it may also be an array. */
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
