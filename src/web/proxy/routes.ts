/** Finds the proxy rule for a request, and the path and query to request from the upstream. */

import { fillPattern, matchPattern, mayMatch, type PathPattern, whyNotExact } from '../../config/types/path-pattern.js'
import { isReserved, type ProxyRule } from '../../config/types/proxy-rules.js'
import { type RuleChoice, whyNotForwardable } from './forwardable.js'
import { cuts, looseSpelling, normalize, readingsOf } from './readings.js'

export type Route =
  /** The request is forwarded. `target` is the path and query for the upstream. */
  | { readonly kind: 'forward'; readonly rule: ProxyRule; readonly target: string }
  /**
   * At least one rule matches the path, but none of these rules allows the method. `allow` is the value of the Allow
   * header.
   */
  | { readonly kind: 'wrongMethod'; readonly allow: string }
  /**
   * The path seems to match a rule, but the upstream could interpret the path differently. So the request must be
   * rejected.
   */
  | { readonly kind: 'inexact'; readonly reason: string }

export type ForwardRoute = Extract<Route, { kind: 'forward' }>

/**
 * Finds the first rule that matches the path and the method. Returns undefined if no rule matches the path.
 * @param target the request target exactly as the client sent it
 */
export type FindRoute = (method: string, target: string) => Route | undefined

/**
 * @param publicOrigin the origin of this server; a request target in absolute form (RFC 9112 section 3.2.2) must begin
 * with it
 */
export function createRoutes(rules: readonly ProxyRule[], publicOrigin: string): FindRoute {
  const patterns = rules.map(({ path }) => path)
  const choices = new Map(rules.flatMap(({ methods }) => methods).map(method => [method, choiceOf(rules, method)]))
  const routeOf = decisionCache(decide)
  return findRoute

  function findRoute(method: string, target: string): Route | undefined {
    if (!target.startsWith('/')) return absoluteForm(method, target)
    const queryStart = target.indexOf('?')
    const given = queryStart === -1 ? target : target.slice(0, queryStart)
    const query = target.slice(given.length)
    // Clients that join a base URL with a path may send two slashes. All servers would ignore the second one here,
    // because the path that is forwarded is that of the target.
    const path = given.startsWith('//') ? given.replace(/^\/+/, '/') : given
    if (query.includes('#')) return refusal(path, 'it contains a fragment')
    const route = routeOf(method === 'HEAD' ? 'GET' : method, path)
    return route?.kind === 'forward' ? { ...route, target: route.target + query } : route
  }

  /** Returns the route of a path without a query. */
  function decide(method: string, path: string): Route | undefined {
    const route = matchingRoute(method, path)
    if (route?.kind === 'wrongMethod') return route
    const choice = choices.get(method)
    const reason = route && choice ? whyNotForwardable(path, route.rule, choice) : whyNotExact(path)
    return reason === undefined ? route : refusal(path, reason)
  }

  function matchingRoute(method: string, path: string): Exclude<Route, { kind: 'inexact' }> | undefined {
    const segments = path.slice(1).split('/')
    if (isReserved(segments)) return undefined
    const allowed = new Set<string>()
    for (const rule of rules) {
      const captured = matchPattern(rule.path, segments)
      if (!captured) continue
      if (rule.methods.includes(method)) {
        return { kind: 'forward', rule, target: fillPattern(rule.target, captured) }
      }
      for (const method of rule.methods) allowed.add(method)
    }
    if (allowed.size === 0) return undefined
    const allow = [...allowed].map(method => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')
    return { kind: 'wrongMethod', allow }
  }

  function absoluteForm(method: string, target: string): Route | undefined {
    const [, origin = '', rest = '/'] = /^([a-z][a-z\d+.-]*:\/\/[^/?#]*)(.*)$/i.exec(target) ?? []
    const path = rest.startsWith('/') ? rest : `/${rest}`
    if (URL.canParse(origin) && new URL(origin).origin === publicOrigin) return findRoute(method, path)
    return refusal(path.replace(/\?.*/, ''), 'it has another host')
  }

  // An ambiguous path is never forwarded. If such a path could match a rule, the response has the status 400.
  // Otherwise, other routes handle the request.
  function refusal(path: string, reason: string): Route | undefined {
    if (isReserved(path.slice(1).split('/')) || !mayMatch(patterns, path)) return undefined
    return { kind: 'inexact', reason }
  }
}

const MAX_DECISIONS = 2000
// The paths of real clients are shorter, so that the decisions need less than 2 MB.
const MAX_DECIDED_LENGTH = 1000

/**
 * Creates a function that remembers the routes of another one, because pages request the same files again, and finding all readings
 * of a path takes longer than the rest of the proxy's own work. The route depends on nothing but the key. Paths without a rule are
 * not remembered, because they are those of other routes.
 */
function decisionCache(decide: (method: string, path: string) => Route | undefined) {
  const known = new Map<string, Route>()
  return (method: string, given: string): Route | undefined => {
    const remembered = known.get(`${method} ${given}`)
    if (remembered) return remembered
    // V8 stores a part of a string as a view, which keeps the whole URL with its query in memory.
    const path = Buffer.from(given).toString()
    const route = decide(method, path)
    if (!route || path.length > MAX_DECIDED_LENGTH) return route
    // A map iterates in the order in which its keys were added.
    if (known.size === MAX_DECISIONS) known.delete(known.keys().next().value as string)
    known.set(`${method} ${path}`, route)
    return route
  }
}

function choiceOf(rules: readonly ProxyRule[], method: string): RuleChoice {
  const ofMethod = rules.filter(({ methods }) => methods.includes(method))
  const exact = ofMethod.map(rule => ({ rule, matches: readingMatcher(rule.path) }))
  const loose = ofMethod.map(rule => ({ rule, matches: readingMatcher(rule.path, looseSpelling) }))
  const confusable = new Map(ofMethod.map(rule => [rule, loose.filter(other => mayConfuse(rule, other.rule))]))
  // No pattern looks at more segments, and a path can have thousands.
  const longest = 1 + Math.max(1, ...ofMethod.map(({ path }) => path.segments.length))
  return {
    select(reading) {
      const segments = reading.slice(1).split('/', longest)
      return isReserved(segments) ? 'reserved' : exact.find(({ matches }) => matches(segments))?.rule
    },
    isConfusable(reading, rule) {
      const others = confusable.get(rule) ?? []
      // The rule itself is always in the list.
      if (others.length <= 1) return false
      const segments = reading.slice(1).split('/')
      return [segments.slice(0, longest), withoutEmpty(segments, longest)].some(path => {
        const spelt = path.map(looseSpelling)
        const first = others.find(({ matches }) => matches(path, spelt))?.rule
        return first !== undefined && first !== rule
      })
    }
  }
}

/** Returns the first `count` segments that are not empty for a server that compares names loosely. */
function withoutEmpty(segments: readonly string[], count: number): readonly string[] {
  const filled: string[] = []
  for (const segment of segments) {
    if (filled.length === count) break
    if (looseSpelling(segment) !== '') filled.push(segment)
  }
  return filled
}

/** True for the rule itself, and for other rules that grant different rights at the same target. */
function mayConfuse(rule: ProxyRule, other: ProxyRule): boolean {
  const rights = ({ token, methods, acceptsLinks }: ProxyRule) =>
    [token, acceptsLinks, ...[...methods].sort()].join(' ')
  return other === rule || (other.targetOrigin === rule.targetOrigin && rights(other) !== rights(rule))
}

/**
 * Returns a function that compares a reading of a path with a pattern. An upstream that decodes the path may also decode
 * the paths of its own rules, so a literal of the pattern counts in all its readings. The function gets the segments of the path,
 * and each one as `spell` spells it. A path has many readings, and there may be many rules, so the function must be fast.
 * @param spell how the literals are spelt
 */
function readingMatcher({ segments, hasRest }: PathPattern, spell = (segment: string) => segment) {
  const spellings = segments.map(literal => {
    if (literal === '*') return undefined
    return new Set([...(readingsOf(literal, [normalize, ...cuts]) ?? [literal])].map(spell))
  })
  return (path: readonly string[], spelt = path): boolean =>
    (hasRest ? path.length >= segments.length : path.length === segments.length) &&
    spellings.every((literals, index) => (literals ? literals.has(spelt[index] as string) : path[index] !== ''))
}
