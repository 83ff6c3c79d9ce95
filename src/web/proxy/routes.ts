/** Finds the proxy rule for a request, and the path and query to request from the upstream. */

import { fillPattern, matchPattern, mayMatch, type PathPattern, whyNotExact } from '../../config/path-pattern.js'
import { isReserved, type ProxyRule } from '../../config/proxy-rules.js'
import { type SelectRule, whyNotForwardable } from './forwardable.js'
import { cuts, normalize, readingsOf } from './readings.js'

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
  const matchers = rules.map(rule => ({ rule, matches: readingMatcher(rule.path) }))
  return findRoute

  function findRoute(method: string, target: string): Route | undefined {
    if (!target.startsWith('/')) return absoluteForm(method, target)
    const queryStart = target.indexOf('?')
    const given = queryStart === -1 ? target : target.slice(0, queryStart)
    const query = target.slice(given.length)
    // Clients that join a base URL with a path may send two slashes. All servers would ignore the second one here,
    // because the path that is forwarded is that of the target.
    const path = given.startsWith('//') ? given.replace(/^\/+/, '/') : given
    const wanted = method === 'HEAD' ? 'GET' : method
    const route = matchingRoute(wanted, path, query)
    const reason = query.includes('#') ? 'it contains a fragment' : whyNot(wanted, path, route)
    if (reason === undefined) return route
    return mayBelongToRule(path) ? { kind: 'inexact', reason } : undefined
  }

  function whyNot(method: string, path: string, route: Route | undefined): string | undefined {
    if (!route) return whyNotExact(path)
    return route.kind === 'forward' ? whyNotForwardable(path, route.rule, selectFor(method)) : undefined
  }

  function matchingRoute(method: string, path: string, query: string): Route | undefined {
    const segments = path.slice(1).split('/')
    if (isReserved(segments)) return undefined
    const allowed = new Set<string>()
    for (const rule of rules) {
      const captured = matchPattern(rule.path, segments)
      if (!captured) continue
      if (rule.methods.includes(method)) {
        return { kind: 'forward', rule, target: fillPattern(rule.target, captured) + query }
      }
      for (const method of rule.methods) allowed.add(method)
    }
    if (allowed.size === 0) return undefined
    const allow = [...allowed].map(method => (method === 'GET' ? 'GET, HEAD' : method)).join(', ')
    return { kind: 'wrongMethod', allow }
  }

  function selectFor(method: string): SelectRule {
    return reading => {
      const segments = reading.slice(1).split('/')
      if (isReserved(segments)) return 'reserved'
      return matchers.find(({ rule, matches }) => rule.methods.includes(method) && matches(segments))?.rule
    }
  }

  function absoluteForm(method: string, target: string): Route | undefined {
    const [, origin = '', rest = '/'] = /^([a-z][a-z\d+.-]*:\/\/[^/?#]*)(.*)$/i.exec(target) ?? []
    const path = rest.startsWith('/') ? rest : `/${rest}`
    if (URL.canParse(origin) && new URL(origin).origin === publicOrigin) return findRoute(method, path)
    return mayBelongToRule(path.replace(/\?.*/, '')) ? { kind: 'inexact', reason: 'it has another host' } : undefined
  }

  // An ambiguous path is never forwarded. If such a path could match a rule, the response has the status 400.
  // Otherwise, other routes handle the request.
  function mayBelongToRule(path: string): boolean {
    if (isReserved(path.slice(1).split('/'))) return false
    return mayMatch(patterns, path)
  }
}

/**
 * Returns a function that compares a reading of a path with a pattern. An upstream that decodes the path may also decode
 * the paths of its own rules, so a literal of the pattern counts in all its readings.
 */
function readingMatcher(pattern: PathPattern): (path: readonly string[]) => boolean {
  const spellings = pattern.segments.map(literal => readingsOf(literal, [normalize, ...cuts]) ?? new Set([literal]))
  const original = (segment: string, index: number) =>
    spellings[index]?.has(segment) ? (pattern.segments[index] as string) : segment
  const isEncoded = spellings.some(({ size }) => size > 1)
  // A path can have thousands of segments, and a pattern has few.
  const { length } = spellings
  const spelt = (path: readonly string[]) => [...path.slice(0, length).map(original), ...path.slice(length)]
  return path => matchPattern(pattern, isEncoded ? spelt(path) : path) !== undefined
}
