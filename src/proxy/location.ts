import { fillPattern, matchPattern } from '../config/path-pattern.js'
import type { ProxyRule } from '../config/proxy-rules.js'
import type { FindRoute } from './routes.js'

/** Turns a Location of the upstream into one for the browser, or drops one that is no address. */
export type MapLocation = (location: string, asked: Asked) => string | undefined

/** The address that the upstream was asked for. */
export interface Asked {
  readonly rule: ProxyRule
  readonly target: string
}

/**
 * A Location inside the target of its rule becomes a path of this server, as long as that path leads back to the same address.
 * Every other one is passed on as an absolute address (RFC 9110 section 10.2.2).
 * @param basePath the public path in front of this server, which a proxy strips
 */
export function createMapLocation(findRoute: FindRoute, basePath: string): MapLocation {
  return function mapLocation(location, { rule, target }) {
    const base = `${rule.targetOrigin}${target}`
    const ascii = location.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
    if (!URL.canParse(ascii, base)) return undefined
    const url = new URL(ascii, base)
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
