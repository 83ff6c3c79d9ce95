/** Finds the rule for a request and the address at the upstream. */
import { whyNotExact } from '../config/exact-path.js'
import { fillPattern, matchPattern, type PathPattern } from '../config/path-pattern.js'
import { isReserved, type ProxyRule } from '../config/proxy-rules.js'

export type Route =
  /** `target` is the path and query for the upstream. */
  | { readonly kind: 'forward'; readonly rule: ProxyRule; readonly target: string }
  /** Rules match the path, but not the method. */
  | { readonly kind: 'wrongMethod'; readonly allow: string }
  /** The path probably belongs to a rule, but servers may interpret it in different ways. */
  | { readonly kind: 'inexact'; readonly reason: string }

/**
 * Finds the first rule that matches the path and the method. Returns undefined if the path belongs to no rule.
 * @param target the request target exactly as the client sent it
 */
export type FindRoute = (method: string, target: string) => Route | undefined

/** @param publicOrigin the only origin that a target in absolute form (RFC 9112 section 3.2.2) may have */
export function createRoutes(rules: readonly ProxyRule[], publicOrigin: string): FindRoute {
  return findRoute

  function findRoute(method: string, target: string): Route | undefined {
    if (!target.startsWith('/')) return absoluteForm(method, target)
    const queryStart = target.indexOf('?')
    const path = queryStart === -1 ? target : target.slice(0, queryStart)
    const query = target.slice(path.length)
    const reason = whyNotExact(path) ?? (query.includes('#') ? 'it holds a fragment' : undefined)
    if (reason !== undefined) return mayBelongToRule(path) ? { kind: 'inexact', reason } : undefined
    return exactRoute(method, path, query)
  }

  function exactRoute(method: string, path: string, query: string): Route | undefined {
    const segments = path.slice(1).split('/')
    if (isReserved(segments)) return undefined
    const wanted = method === 'HEAD' ? 'GET' : method
    const allowed = new Set<string>()
    for (const rule of rules) {
      const captured = matchPattern(rule.path, segments)
      if (!captured) continue
      if (rule.methods.includes(wanted)) {
        return { kind: 'forward', rule, target: fillPattern(rule.target, captured) + query }
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
    return mayBelongToRule(path.replace(/\?.*/, '')) ? { kind: 'inexact', reason: 'it has another host' } : undefined
  }

  // An ambiguous path is never forwarded. The result decides if the response is 400 or comes from the following layers.
  function mayBelongToRule(path: string): boolean {
    if (isReserved(path.slice(1).split('/'))) return false
    const readings = [
      path,
      decode(path),
      resolveDots(path),
      resolveDots(decode(path)),
      resolveDots(decode(decode(path)))
    ]
    return readings.some(reading => {
      const segments = reading.split('/').filter(segment => segment !== '')
      return rules.some(({ path }) => hasPrefixOf(segments, path))
    })
  }
}

/**
 * True if a path begins with the segments of a pattern before its first wildcard. If the pattern begins with a wildcard, all
 * its segments must match.
 */
function hasPrefixOf(path: readonly string[], { segments }: PathPattern): boolean {
  const wildcard = segments.indexOf('*')
  const expected = wildcard > 0 ? segments.slice(0, wildcard) : segments
  return expected.every((segment, index) => segment === path[index] || (segment === '*' && index < path.length))
}

/** Decodes a path like a careless server, which also decodes escaped slashes and dots and accepts backslashes. */
function decode(path: string): string {
  return path
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll('\\', '/')
}

function resolveDots(path: string): string {
  const resolved: string[] = []
  for (const segment of path.split('/')) {
    const name = segment.replace(/;.*/, '')
    if (name === '..') resolved.pop()
    else if (name !== '.' && name !== '') resolved.push(segment)
  }
  return `/${resolved.join('/')}`
}
