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

// RFC 8259 sections 6 and 7.
const STRING = /^"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/u
const NUMBER_OR_WORD = /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/
const MAX_DEPTH = 100

/**
 * Returns the first error in a string that JSON.parse rejects. The message of JSON.parse contains the position only in
 * some cases, and it quotes the string, which may contain a secret. The returned error quotes nothing.
 * @returns `expected`, which is what JSON requires at the position of the error, such as "a colon"; and `place`, which is
 *   the line and the column, counted from 1
 */
export function findJsonError(text: string) {
  const { expected = 'the end of the file', place } = scanJson(text, () => undefined)
  return { expected, place }
}

/**
 * Returns the first name that an object of a valid JSON text contains twice. JSON.parse ignores all but the last of the members
 * with this name (RFC 8259 section 4).
 * @param within the name of a member of the outermost object, if only this member and its content count
 * @returns `path`, which is the name with those of the members that contain it, such as `access.allow`; and `place`, as for
 *   `findJsonError`
 */
export function findDuplicateName(text: string, within?: string) {
  let path: string | undefined
  const { expected, place } = scanJson(text, (names, isDuplicate) => {
    if (!isDuplicate || (within !== undefined && names[0] !== within)) return undefined
    path = names.join('.')
    return 'a new name'
  })
  return expected === undefined || path === undefined ? undefined : { path, place }
}

/**
 * Reads JSON up to the first error.
 * @param onName called with each name of a member, after those of the members that contain it. If it returns a string, the scan
 *   stops before this name, with this string as `expected`
 */
function scanJson(text: string, onName: (names: readonly string[], isDuplicate: boolean) => string | undefined) {
  let index = 0
  let depth = 0
  const names: string[] = []
  const expected = skipValue('a value')
  skip(/^$/)
  const lines = text.slice(0, index).split('\n')
  return { expected, place: `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}` }

  /** Skips white space, and then the token. Returns undefined if the text continues with something else. */
  function skip(token: RegExp): string | undefined {
    index += text.slice(index).search(/[^ \t\r\n]|$/)
    const found = token.exec(text.slice(index))?.[0]
    index += found?.length ?? 0
    return found
  }

  // The following functions skip a part of the text. At an error, they stop and return what JSON expects there.

  function skipValue(expected: string): string | undefined {
    if (skip(/^\{/)) return skipObject()
    if (skip(/^\[/)) return skipList(/^\]/, ']', 'a value', skipValue)
    return skip(STRING) || skip(NUMBER_OR_WORD) ? undefined : expected
  }

  function skipObject(): string | undefined {
    const seen = new Set<string>()
    return skipList(/^\}/, '}', 'a name in double quotes', function skipMember(expected) {
      skip(/^/)
      const start = index
      const written = skip(STRING)
      if (written === undefined) return expected
      const name: string = JSON.parse(written)
      const rejected = onName([...names, name], seen.has(name))
      if (rejected !== undefined) {
        index = start
        return rejected
      }
      seen.add(name)
      if (!skip(/^:/)) return 'a colon'
      names.push(name)
      const error = skipValue('a value')
      names.pop()
      return error
    })
  }

  function skipList(
    end: RegExp,
    bracket: string,
    item: string,
    skipItem: (expected: string) => string | undefined
  ): string | undefined {
    if (skip(end)) return undefined
    // Each level is a function call, and a stack has room for only a few thousand calls.
    if (++depth > MAX_DEPTH) return `a file with at most ${MAX_DEPTH} levels of brackets`
    let error = skipItem(`${item} or ${bracket}`)
    while (!error && !skip(end)) error = skip(/^,/) ? skipItem(item) : `a comma or ${bracket}`
    depth--
    return error
  }
}
