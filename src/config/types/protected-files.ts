/** The patterns of `access.files`, which select the static files that need a session, and the rule that applies them. */
import { coversPattern, matchPattern, type PathPattern, parsePattern, whyNoPattern } from './path-pattern.js'
import { itemsOf, REJECTED, type ValueType } from './value-type.js'

export interface FilePattern {
  /** The pattern as it was written. */
  readonly text: string
  /** True if the text begins with `!`, so that everyone may read the files that the pattern matches. */
  readonly isPublic: boolean
  readonly path: PathPattern
}

/**
 * True if a file needs a session. The first pattern that matches decides. A file that no pattern matches is public. A pattern that
 * protects files ignores letter case, because a file system may ignore it too, and also applies to everything below its path. A
 * pattern with `!` is exact, because a mistake in it must not publish a file.
 *
 * A pattern is the path of a URL, and a file can have several URLs: `/about/index.html` is also `/about/`, for example.
 * A pattern for one of them applies to the file, so it applies to all of them.
 * @param file the path of the file below wwwroot, with `/` as separator
 */
export function isProtectedFile(file: string, patterns: readonly FilePattern[]): boolean {
  const deciding = decidingPattern(file, patterns)
  return deciding !== undefined && !deciding.isPublic
}

/**
 * True if a path that leads to no file gets the response of a protected file. Otherwise, everybody could find out which protected
 * files exist.
 * @param path the path below wwwroot, as for `isProtectedFile`, or that of a folder with a slash at its end
 */
export function isProtectedPath(path: string, patterns: readonly FilePattern[]): boolean {
  const deciding = decidingPattern(path, patterns)
  if (deciding) return !deciding.isPublic
  return [`${path}.html`, `${path}/index.html`, `${path}index.html`].some(file => isProtectedFile(file, patterns))
}

function decidingPattern(file: string, patterns: readonly FilePattern[]): FilePattern | undefined {
  // No pattern looks at more segments.
  const longest = 1 + Math.max(...patterns.map(({ path }) => path.segments.length))
  const paths = urlPathsOf(file).map(path => path.split('/', longest))
  const spelt = (isPublic: boolean) => paths.map(path => path.map(name => canonicalName(name, isPublic)))
  const [protecting, publishing] = [spelt(false), spelt(true)]
  return patterns.find(({ isPublic, path: pattern }) =>
    (isPublic ? publishing : protecting).some(path => matchPattern(pattern, path) !== undefined)
  )
}

/** Returns the paths under which the server serves a file, without the leading slash. */
function urlPathsOf(file: string): readonly string[] {
  const uncompressed = file.replace(/\.(?:br|gz)$/i, '')
  const page = uncompressed.replace(/\.html$/i, '')
  const folder = uncompressed.replace(/(^|\/)index\.html$/i, '$1')
  return [...new Set([file, uncompressed, page, folder])]
}

// No file has a longer name, and normalizing a long one takes long.
const MAX_NAME_LENGTH = 255

/**
 * Spells a name in one way: as Unicode in the form NFC, percent-encoded. An asterisk in a name is not a wildcard.
 * @param isPublic true for a pattern with `!`, for which letter case matters
 */
export function canonicalName(name: string, isPublic: boolean): string {
  if (name.length > MAX_NAME_LENGTH) return name
  const unicode = name.normalize('NFC')
  // The upper case first, because it joins more letters, such as s and its long form.
  const folded = isPublic ? unicode : unicode.toUpperCase().toLowerCase()
  return encodeURIComponent(folded).replaceAll('*', '%2A')
}

export const filePatterns: ValueType<readonly FilePattern[], readonly string[]> = {
  allowed: 'path patterns such as /** or /reports/**, separated by spaces, with a ! before those of public files',
  json: { type: ['string', 'array'], items: { type: 'string', pattern: '^!?/\\S*$' }, minItems: 1 },
  sample: ['/reports/**'],
  parse(written) {
    const items = itemsOf(written) ?? []
    if (items.length === 0) return REJECTED
    const patterns: FilePattern[] = []
    for (const [index, text] of items.entries()) {
      const [, exclamationMark = '', path = ''] = /^(!?)(.*)$/s.exec(text) ?? []
      const reason =
        whyNoPattern(path) ?? (decoded(path) === undefined ? 'its percent-encoding is not UTF-8' : undefined)
      if (reason !== undefined) return { reason: `pattern ${index + 1} cannot be used: ${reason}` }
      const isPublic = exclamationMark !== ''
      const earlier = patterns.find(
        earlier =>
          earlier.isPublic !== isPublic && coversPattern(earlier.path, parseCanonical(path, isPublic, earlier.isPublic))
      )
      if (earlier) {
        const problem = `has pattern ${index + 1} after pattern ${patterns.indexOf(earlier) + 1}, which already decides about the same files. Change their order, or remove one.`
        return { problems: [problem] }
      }
      patterns.push({ text, isPublic, path: parseCanonical(path, isPublic) })
    }
    if (patterns.every(({ isPublic }) => isPublic)) {
      return {
        problems: [
          'protects no file, because every pattern begins with "!". Add the pattern of the other files, such as /**.'
        ]
      }
    }
    return { value: patterns }
  },
  write: patterns => patterns.map(({ text }) => text)
}

/** @param isCaseSensitive true if the pattern is compared with the pattern of public files */
function parseCanonical(path: string, isPublic: boolean, isCaseSensitive = isPublic): PathPattern {
  const { segments, hasRest } = parsePattern(path)
  const spelt = segments.map(name => (name === '*' ? name : canonicalName(decoded(name) ?? name, isCaseSensitive)))
  if (isPublic) return { hasRest, segments: spelt }
  return { hasRest: true, segments: spelt.at(-1) === '' ? spelt.slice(0, -1) : spelt }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
