/** The type of a setting. It describes the allowed values to operators and editors, and it parses and checks values. */
export interface ValueType<Value, Written = Value> {
  /** The allowed values, worded so that they continue the sentence "Set it to …". */
  readonly allowed: string
  /** The JSON Schema of the values. */
  readonly json: { readonly [keyword: string]: unknown }
  /**
   * Parses a string from a flag, a variable or a secret file into the typed value that a settings file would contain. Returns an
   * invalid string unchanged, and `parse` rejects it. A type needs no such function if the value is the string itself.
   */
  readonly fromString?: (string: string) => unknown
  /** Checks a value from a file or an application, and converts it to the value that the server uses. */
  readonly parse: (written: unknown) => Parsed<Value>
  /**
   * Converts a parsed value back to a value for a file. A type needs no such function if its `parse` does not change
   * the form of the value.
   */
  write?(value: Value): Written
  /** The unit of a value that is a number. Operators may write other units, such as minutes. */
  readonly unit?: 'Seconds' | 'Bytes'
  /**
   * Returns what messages and the command `config` show of a valid value, without its secret parts. Without this function, they
   * show the whole value, but nothing of a secret.
   */
  mask?(written: Written): unknown
  /** True if the value contains a secret. Without this function, every value of a secret setting does. */
  readonly containsSecret?: (string: string) => boolean
  /**
   * Checks the file or folder at a path. Returns the reason why the server cannot use it, which continues "because …".
   * Rejects if the file or folder cannot be read.
   */
  readonly whyUnusable?: (path: string) => Promise<string | undefined>
  /** Returns a doubt about a valid value of a secret, worded like `ConfigProblem.message`, without any part of the value. */
  readonly doubt?: (string: string) => string | undefined
  /** True if the flag may be given more than once. Each occurrence adds items to the list. */
  readonly isRepeatable?: true
  /** True if the value is usually the content of a file, such as a key. Messages then name this file. */
  readonly isFileContent?: true
  /** Example items for a comment in a new settings file. */
  readonly sample?: readonly string[]
}

/** `rejected` has one message for each problem, worded like `ConfigProblem.message`. */
export type Checked = { readonly value: unknown } | { readonly rejected: readonly string[] }

export type Parsed<Value> = { readonly value: Value } | RejectedValue

/** Describes why a value was rejected. The message contains the value, the reason if there is one, and `allowed`. */
interface RejectedValue {
  readonly reason?: string | undefined
  /** Complete messages, worded like `ConfigProblem.message`, for a type whose values can have several problems. */
  readonly problems?: readonly string[]
}

/** The result for a value of the wrong form. No reason is needed, because the message contains the allowed values. */
export const REJECTED: RejectedValue = {}

/**
 * A check of a string or for each item of a list. The reason continues "because …". Without a reason, the message contains
 * only the allowed values.
 */
export interface StringCheck {
  readonly accepts: (string: string) => boolean
  readonly reason?: string
}

/**
 * Returns a function that accepts a string if all checks accept it. It stops at the first failed check, because a later
 * check may rely on an earlier one. For example, a check may parse a URL that an earlier check has accepted.
 */
export function stringWith(...checks: readonly StringCheck[]): (written: unknown) => Parsed<string> {
  return function parseString(written) {
    if (typeof written !== 'string') return REJECTED
    const failed = checks.find(({ accepts }) => !accepts(written))
    return failed ? { reason: failed.reason } : { value: written }
  }
}

/** Returns a function that accepts a list if all checks accept every item. */
export function listWith(...checks: readonly StringCheck[]): (written: unknown) => Parsed<readonly string[]> {
  return function parseList(written) {
    const items = itemsOf(written)
    if (!items) return REJECTED
    const failed = checks.find(({ accepts }) => !items.every(accepts))
    return failed ? { reason: failed.reason } : { value: items }
  }
}

/** Returns the items of a list, or the words of a string. Returns undefined for any other value. */
export function itemsOf(written: unknown): readonly string[] | undefined {
  if (typeof written === 'string') return written.split(/\s+/).filter(word => word !== '')
  return Array.isArray(written) && written.every(item => typeof item === 'string') ? written : undefined
}

/** The type of a value from a list. Letter case does not matter, as in LOG_LEVEL=INFO. */
export function oneOf<const Options extends readonly [string, string, ...string[]]>(
  ...options: Options
): ValueType<Options[number]> {
  return {
    allowed: `${options.slice(0, -1).join(', ')} or ${options.at(-1)}`,
    json: { enum: options },
    parse: written => {
      const value = options.find(
        option => typeof written === 'string' && option.toLowerCase() === written.toLowerCase()
      )
      return value === undefined ? REJECTED : { value }
    }
  }
}

export const yesOrNo: ValueType<boolean> = {
  allowed: 'true or false',
  json: { type: 'boolean' },
  fromString: string => words.get(string.toLowerCase()) ?? string,
  parse: written => (typeof written === 'boolean' ? { value: written } : REJECTED)
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
    fromString: string => (/^-?\d+$/.test(string) ? Number(string) : string),
    parse: written =>
      typeof written === 'number' && Number.isInteger(written) && written >= minimum && written <= maximum
        ? { value: written }
        : REJECTED
  }
}

/** With port 0, the system chooses a free port. */
export const port = integer(0, 65535, 'a port number')

export function string(allowed: string, pattern: RegExp): ValueType<string> {
  return {
    allowed,
    json: { type: 'string', pattern: pattern.source },
    parse: stringWith({ accepts: string => pattern.test(string) })
  }
}

/**
 * The type of a list. The items in a string are separated by white space. A settings file may also contain an array.
 */
export function list(allowed: string, item: RegExp): ValueType<readonly string[]> {
  const parse = listWith({ accepts: word => item.test(word) })
  return {
    allowed,
    json: { type: ['string', 'array'], items: { type: 'string', pattern: item.source }, minItems: 1 },
    parse: written => (itemsOf(written)?.length === 0 ? REJECTED : parse(written))
  }
}

/** Converts a string, such as the value of a variable, to the value that a settings file would contain. */
export function readString({ fromString }: Pick<ValueType<unknown>, 'fromString'>, string: string): unknown {
  return fromString ? fromString(string) : string
}
