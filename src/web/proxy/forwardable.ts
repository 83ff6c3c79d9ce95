/**
 * Decides whether a path that matches a proxy rule can be forwarded. An upstream may decode the path, also more than
 * once, merge its slashes, remove its path parameters, and replace compatibility characters. Whatever it does, it must
 * see only what the rule allows (CVE-2021-21321, CVE-2026-16117).
 */

import { decode, isBeyondAscii, textOf } from '../../base/path-readings.js'
import { hasDotSegment, isOverlong, type PathPattern, whyMalformed } from '../../config/types/path-pattern.js'
import type { ProxyRule } from '../../config/types/proxy-rules.js'
import { canBeCut, cuts, mergeSlashes, normalize, type Operation, readingsOf } from './readings.js'

/** The rules of the proxy, for one method and for paths in any reading. */
export interface RuleChoice {
  /** Returns the rule that matches a reading of a path. */
  select(reading: string): ProxyRule | 'reserved' | undefined
  /**
   * True if a server that compares names loosely may take a path of `rule` for a path of another rule with the same target, and
   * the two rules grant different rights.
   */
  isConfusable(reading: string, rule: ProxyRule): boolean
}

/**
 * Returns the reason why the path cannot be forwarded, or undefined if it can.
 * @param path the path without its query, exactly as it would be sent
 * @param rule the rule that matches the path byte for byte
 */
export function whyNotForwardable(path: string, rule: ProxyRule, rules: RuleChoice): string | undefined {
  if (!HAS_SEVERAL_READINGS.test(path)) return rules.isConfusable(path, rule) ? OTHER_RULE : undefined
  const malformed = whyMalformed(path)
  if (malformed !== undefined) return malformed
  const readings = readPath(path)
  if (!readings) return TOO_MANY
  return whyUnsafe(readings) ?? whyWildcardsDiffer(path, rule) ?? whyRulesDiffer(path, readings, rule, rules)
}

const TOO_MANY =
  'it is percent-encoded more than three times, has more than 30 combining marks in a row, or can be read in too many ways'
const OTHER_RULE =
  'decoded, shortened or in another spelling, it belongs to another rule, to this server itself, or to no rule'

const HAS_SEVERAL_READINGS = /[^!-~]|[%;\\#]|\/\/|\/\.\.?(\/|$)/

interface Readings {
  /** The readings in which no part of the path is removed. */
  readonly whole: ReadonlySet<string>
  /** The readings of `whole`, and those in which path parameters or the end of the path are removed. */
  readonly all: ReadonlySet<string>
}

const unchanged = (operation: Operation) => operation

function readPath(path: string, adapt: (operation: Operation) => Operation = unchanged): Readings | undefined {
  const whole = readingsOf(path, [adapt(normalize)], adapt(decode))
  const canShorten = whole && [...whole].some(canBeCut)
  const all = canShorten ? readingsOf(path, [adapt(normalize), ...cuts], adapt(decode)) : whole
  return whole && all && { whole, all }
}

function whyUnsafe({ all }: Readings): string | undefined {
  for (const reading of all) {
    if (CONTROL.test(reading)) return 'it contains an encoded control character'
    if (reading.includes('\\')) return 'it contains an encoded backslash'
    if (isOverlong(reading)) return 'it contains an overlong UTF-8 sequence'
    if (hasDotSegment(reading) || (isBeyondAscii(reading) && hasDotSegment(textOf(reading))))
      return 'it has a dot segment'
    const normalized = normalize(reading)
    if (normalized !== reading && countEscapes(normalized) > countEscapes(reading)) {
      return 'it contains a character that looks like a percent sign, before two hexadecimal digits'
    }
  }
  return undefined
}

const CONTROL = /[^ -~\x80-\xff]/

function countEscapes(path: string): number {
  return path.match(/%[0-9a-f]{2}/gi)?.length ?? 0
}

function countSlashes(path: string): number {
  return path.split('/').length - 1
}

/**
 * For every upstream, `*` stands for one segment that is not empty. So the part that it matched contains no slash, and
 * is more than a path parameter. With `encoded-slashes`, this applies to each part between two slashes.
 */
function whyWildcardsDiffer(path: string, { path: pattern, encodedSlashes }: ProxyRule): string | undefined {
  const segments = path.slice(1).split('/')
  for (const segment of segments.filter((_, index) => pattern.segments[index] === '*')) {
    for (const reading of readPath(segment)?.whole ?? []) {
      const parts = reading.split('/')
      if (parts.length > 1 && !encodedSlashes) {
        return 'a segment that * matched contains an encoded slash, which the rule does not allow with encoded-slashes'
      }
      if (parts.some(part => part === '' || part.startsWith(';'))) return 'a segment that * matched has an empty part'
    }
  }
  return undefined
}

/**
 * Every reading of the whole path must select the rule. No other rule may be selected by a shorter path, which an
 * upstream sees if it removes path parameters, or if it looks for the query after decoding.
 */
function whyRulesDiffer(path: string, separated: Readings, rule: ProxyRule, rules: RuleChoice): string | undefined {
  const held = rule.encodedSlashes ? readPath(path, operation => holdSlashes(operation, rule.path)) : separated
  // Some upstreams decode each segment, but keep its encoded slashes, so that `/p/x%2Fy/%64` is `/p/*/d` for them.
  const hasHiddenSlash = [...separated.whole].some(reading => countSlashes(reading) > countSlashes(path))
  const inSegments = hasHiddenSlash ? readPath(path, operation => holdSlashes(operation)) : separated
  if (!held || !inSegments) return TOO_MANY
  const selects = (reading: string, accepted: readonly unknown[]) => accepted.includes(rules.select(reading))
  const whole = merged([...held.whole, ...inSegments.whole])
  const all = merged([...held.all, ...separated.all, ...inSegments.all, ...withSlashes(inSegments.all)])
  const isSame =
    whole.every(reading => selects(reading, [rule])) &&
    all.every(reading => selects(reading, [rule, undefined]) && !rules.isConfusable(reading, rule))
  return isSame ? undefined : OTHER_RULE
}

/** Adds the readings with merged slashes. */
function merged(readings: readonly string[]): readonly string[] {
  return [
    ...new Set(readings.flatMap(reading => (reading.includes('//') ? [reading, mergeSlashes(reading)] : reading)))
  ]
}

function withSlashes(readings: ReadonlySet<string>): readonly string[] {
  return [...readings].map(reading => reading.replaceAll('\0', '/'))
}

/**
 * Changes an operation so that slashes that it adds to the part of `*`, or without a pattern to any segment, do not separate
 * segments. They become NUL, which no other path contains.
 */
function holdSlashes(operation: Operation, pattern?: PathPattern): Operation {
  return path =>
    path
      .split('/')
      .map((segment, index) => {
        const changed = operation(segment)
        // A path begins with a slash, so the first of its parts is before the first segment.
        return !pattern || pattern.segments[index - 1] === '*' ? changed.replaceAll('/', '\0') : changed
      })
      .join('/')
}
