/** Which rule a request belongs to, and which address of the upstream it asks for. */
import { whyNotExact } from '../config/exact-path.js'
import { fillPattern, matchPattern, type PathPattern } from '../config/path-pattern.js'
import { isReserved, type ProxyRule } from '../config/proxy-rules.js'

export type Route =
  /** `target` is path and query as they go to the upstream. */
  | { readonly kind: 'forward'; readonly rule: ProxyRule; readonly target: string }
  /** The path belongs to a rule, but with other methods. */
  | { readonly kind: 'wrongMethod'; readonly allow: string }
  /** The path seems to mean a rule, but not everybody would read it the same way. */
  | { readonly kind: 'inexact'; readonly reason: string }

/**
 * Finds the first rule that matches path and method, or undefined where no rule is meant.
 * @param target the request target exactly as the client sent it
 */
export type FindRoute = (method: string, target: string) => Route | undefined

/** @param publicOrigin the only host of which a target in absolute form (RFC 9112 section 3.2.2) is accepted */
export function createRoutes(rules: readonly ProxyRule[], publicOrigin: string): FindRoute {
  return findRoute

  function findRoute(method: string, target: string): Route | undefined {
    if (!target.startsWith('/')) return absoluteForm(method, target)
    const queryStart = target.indexOf('?')
    const path = queryStart === -1 ? target : target.slice(0, queryStart)
    const query = target.slice(path.length)
    const reason = whyNotExact(path) ?? (query.includes('#') ? 'it holds a fragment' : undefined)
    if (reason !== undefined) return isMeant(path) ? { kind: 'inexact', reason } : undefined
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
    return isMeant(path.replace(/\?.*/, '')) ? { kind: 'inexact', reason: 'it names another host' } : undefined
  }

  // Nothing that is not exact is ever sent. This only decides between 400 and leaving the answer to the layers that follow.
  function isMeant(path: string): boolean {
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
      return rules.some(({ path }) => beginsLike(segments, path))
    })
  }
}

/** True if the literal beginning of a pattern, or else all of it, stands at the beginning of a path. */
function beginsLike(path: readonly string[], { segments }: PathPattern): boolean {
  const wildcard = segments.indexOf('*')
  const expected = wildcard > 0 ? segments.slice(0, wildcard) : segments
  return expected.every((segment, index) => segment === path[index] || (segment === '*' && index < path.length))
}

/** Reads a path as a careless server would: escapes and backslashes are slashes and dots like any other. */
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
