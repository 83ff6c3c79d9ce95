/** The path patterns of proxy rules. `*` stands for one segment, and a final `/**` for any rest of the path. */

export interface PathPattern {
  /** The segments, without a final `**`. `*` stands for any segment that is not empty. */
  readonly segments: readonly string[]
  /** True if the pattern ends in `/**`, which also matches an empty rest. */
  readonly hasRest: boolean
}

/** The parts of a path that the wildcards of a pattern matched. */
interface Captured {
  readonly segments: readonly string[]
  /** An empty text, or a text that begins with a slash. */
  readonly rest: string
}

/** Splits a path pattern into its segments. The caller must have checked the syntax of the pattern. */
export function parsePattern(path: string): PathPattern {
  const segments = path.slice(1).split('/')
  const hasRest = segments.at(-1) === '**'
  return { segments: hasRest ? segments.slice(0, -1) : segments, hasRest }
}

/**
 * Compares the segments of a path with a pattern, byte for byte. Returns undefined if the path does not match.
 * @param path the path without its leading slash, split at the slashes
 */
export function matchPattern({ segments, hasRest }: PathPattern, path: readonly string[]): Captured | undefined {
  const { length } = segments
  if (hasRest ? path.length < length : path.length !== length) return undefined
  const captured: string[] = []
  for (let index = 0; index < length; index++) {
    const segment = path[index]
    if (segments[index] !== '*') {
      if (segments[index] !== segment) return undefined
    } else if (segment) captured.push(segment)
    else return undefined
  }
  return { segments: captured, rest: path.length === length ? '' : `/${path.slice(length).join('/')}` }
}

/** Returns the path that results if the captured parts replace the wildcards of a pattern. */
export function fillPattern({ segments }: PathPattern, captured: Captured): string {
  let next = 0
  const filled = segments.map(segment => (segment === '*' ? captured.segments[next++] : segment))
  const path = filled.map(segment => `/${segment}`).join('')
  return path + captured.rest || '/'
}

/** True if every path that `other` matches is also matched by `pattern`. */
export function coversPattern(pattern: PathPattern, other: PathPattern): boolean {
  const { length } = pattern.segments
  if (pattern.hasRest ? other.segments.length < length : other.hasRest || other.segments.length !== length) {
    return false
  }
  return pattern.segments.every((segment, index) => {
    const otherSegment = other.segments[index]
    return segment === otherSegment || (segment === '*' && otherSegment !== '')
  })
}
