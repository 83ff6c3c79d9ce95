import { fillPattern, matchPattern } from '../config/path-pattern.js'
import type { ProxyRule } from '../config/proxy-rules.js'
import type { FindRoute } from './routes.js'

/** Converts the Location header of an upstream for the browser. Returns undefined if it is no http or https address. */
export type MapLocation = (location: string, requested: RequestedTarget) => string | undefined

/** A request to an upstream. `target` is its path and query. */
export interface RequestedTarget {
  readonly rule: ProxyRule
  readonly target: string
}

/**
 * Creates the function that converts a Location. If the address belongs to the upstream and matches the target of the
 * rule, it becomes the path of this server that leads to this address. Any other Location becomes an absolute address
 * (RFC 9110 section 10.2.2).
 * @param basePath the path that browsers use in front of the routes of this server, if a reverse proxy removes it;
 *   otherwise empty
 */
export function createMapLocation(findRoute: FindRoute, basePath: string): MapLocation {
  return function mapLocation(location, { rule, target }) {
    const base = `${rule.targetOrigin}${target}`
    const ascii = location.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
    if (!URL.canParse(ascii, base)) return undefined
    const url = new URL(ascii, base)
    // Another scheme, such as javascript: or file:, has no place in a redirect of an API.
    if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined
    const path = url.origin === rule.targetOrigin && url.username === '' ? pathOf(rule, url.pathname) : undefined
    if (path === undefined || !leadsBack(path, url)) return url.href
    return `${basePath}${path}${url.search}${url.hash}`
  }

  function leadsBack(path: string, { origin, pathname }: URL): boolean {
    const route = findRoute('GET', path)
    if (route?.kind !== 'forward') return route?.kind === 'wrongMethod'
    return route.rule.targetOrigin === origin && route.target === pathname
  }
}

function pathOf({ target, path }: ProxyRule, pathname: string): string | undefined {
  const captured = matchPattern(target, pathname.slice(1).split('/'))
  return captured && fillPattern(path, captured)
}
