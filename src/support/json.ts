/** Returns true if `json` is a JSON object. Returns false for an array, null and every other value. */
export function isJsonObject(json: unknown): json is Readonly<Record<string, unknown>> {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}

/** Parses JSON. Returns undefined if the string is not JSON. */
export function parseJson(string: string): unknown {
  try {
    return JSON.parse(string)
  } catch {
    return undefined
  }
}

// A token of RFC 8259, with the white space before it: a bracket, colon or comma, a string, or another value.
const TOKEN =
  /[ \t\r\n]*(?:([{}[\],:])|("(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-]))/uy

const VALUE = 'a value'
const VALUE_OR_END = 'a value or ]'
const NAME = 'a name in double quotes'
const NAME_OR_END = 'a name in double quotes or }'
const COLON = 'a colon'

interface JsonError {
  /** What JSON requires at this position, such as "a colon". */
  readonly expected: string
  /** The line and the column, counted from 1. */
  readonly place: string
}

/**
 * Returns the first error in a string that JSON.parse rejects. The message of JSON.parse contains the position only in
 * some cases, and it quotes the string, which may contain a secret. The returned error quotes nothing.
 */
export function findJsonError(text: string): JsonError {
  const tokens = new RegExp(TOKEN)
  // The brackets that are open.
  const open: string[] = []
  const afterValue = () => {
    const bracket = open.at(-1)
    if (bracket === undefined) return 'the end of the file'
    return bracket === '[' ? 'a comma or ]' : 'a comma or }'
  }
  /** Returns what must follow the token, or undefined if the token is not allowed here. */
  function next(expected: string, mark: string | undefined, isString: boolean): string | undefined {
    const isValue = expected === VALUE || expected === VALUE_OR_END
    if (mark === '{' || mark === '[') {
      open.push(mark)
      if (isValue) return mark === '{' ? NAME_OR_END : VALUE_OR_END
    } else if (mark === '}' || mark === ']') {
      open.pop()
      if (expected.endsWith(mark)) return afterValue()
    } else if (mark === ',') {
      if (expected.startsWith('a comma')) return open.at(-1) === '[' ? VALUE : NAME
    } else if (mark === ':') {
      if (expected === COLON) return VALUE
    } else if (isValue) return afterValue()
    else if (isString && (expected === NAME || expected === NAME_OR_END)) return COLON
    return undefined
  }

  for (let expected = VALUE; ; ) {
    const start = startOfToken(text, tokens.lastIndex)
    const token = tokens.exec(text)
    const following = token === null ? undefined : next(expected, token[1], token[2] !== undefined)
    if (following === undefined) return { expected, place: placeOf(text, start) }
    expected = following
  }
}

function startOfToken(text: string, from: number): number {
  return from + text.slice(from).search(/[^ \t\r\n]|$/)
}

function placeOf(text: string, index: number): string {
  const lines = text.slice(0, index).split('\n')
  return `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`
}
