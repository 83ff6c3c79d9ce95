/**
 * Decides which requests may use the session of the browser that sends them. A browser sends the session cookie even if
 * a page of another origin caused the request. A page on a sibling subdomain belongs to the same site, so browsers send
 * a `SameSite` cookie with its requests, too. Therefore the server checks headers that browsers add and pages cannot
 * forge: `Origin` (RFC 6454), Fetch Metadata (W3C), `Sec-Purpose`, and the headers of a WebSocket handshake (RFC 6455).
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from 'koa'
import { HttpError, type Refusal } from '../errors/http-error.js'
import { isBrowserPrefetch, isDocument, isNavigation, isPrefetch } from '../request/navigation.js'

/** The kinds of routes, each with its own policy. */
export type RoutePolicy = keyof typeof POLICIES

/** The parts of a browser's request that the check uses. */
export interface BrowserRequest {
  /** Usually one method. A gateway may name several methods, and the check must pass for each of them. */
  readonly methods: readonly string[]
  /** If a header is repeated, Node joins its values, so the joined string equals none of the accepted values. */
  readonly headers: IncomingHttpHeaders
}

interface OriginOptions {
  /** The origin of the callback URL, which is the origin of this site's pages. */
  readonly publicOrigin: string
  /** The name of a header that every request to the proxy must have, if one is configured. */
  readonly csrfHeader?: string | undefined
}

export type OriginRejection = keyof typeof DESCRIPTIONS

interface Policy {
  /**
   * The requests from other sites that are accepted. `links` are requests that open a page with GET or HEAD in a tab or
   * window.
   */
  readonly otherSites: 'none' | 'links' | 'all'
  /**
   * The prefetches that are accepted. With `ownPages`, pages of this origin may prefetch. A page that the browser
   * prerenders also sends its requests with `Sec-Purpose: prefetch` and `Sec-Fetch-Site: same-origin`. With `none`, the marks
   * of frameworks count, too.
   */
  readonly prefetches: 'none' | 'ownPages'
  /** True if WebSockets, and other requests with `Upgrade`, are accepted from pages of this origin. */
  readonly acceptsUpgrades?: true
  /** True if a request is accepted even if its `Origin` is not ours. */
  readonly ignoresOrigin?: true
  /** True if only requests that open a page in a tab, a window or a frame are accepted, also through a service worker. */
  readonly navigationsOnly?: true
  /**
   * True if a request whose method may change something must prove, with a header, that a page of this origin sent it.
   */
  readonly provesOrigin?: true
  /**
   * True if a request without `Sec-Fetch-Site` must name our origin in `Origin` or `Referer`, whatever its method is.
   */
  readonly namesOrigin?: true
  /** The accepted values of `Sec-Fetch-Dest`. */
  readonly destinations?: ReadonlySet<string>
}

// Values of `Sec-Fetch-Dest` for content that a page shows or reads. Scripts, style sheets, workers and frames are not
// in the list, because their content would take effect in the page.
const HARMLESS_DESTINATIONS = new Set(['empty', 'image', 'audio', 'video', 'track', 'font', 'document'])

const POLICIES = {
  /** Login changes no session, so other sites may open this URL in a tab or a frame. */
  login: { otherSites: 'all', prefetches: 'none', navigationsOnly: true },
  /**
   * The identity provider sends the browser here, and `state` proves that this browser started the login. `Origin` is
   * not checked, because a browser may keep the `Origin` of the provider's form when it follows the redirect to the
   * callback.
   */
  callback: { otherSites: 'all', prefetches: 'none', ignoresOrigin: true },
  logout: { otherSites: 'links', prefetches: 'none' },
  /**
   * A logout on all devices of a user. A link on another site must not cause such a logout. Browsers do not send `Sec-Fetch-Site`
   * to a site with plain http, for example. In this case, `Referer` (RFC 9110 section 10.1.3) shows which page contains the link.
   */
  logoutEverywhere: { otherSites: 'none', prefetches: 'none', namesOrigin: true },
  /** The profile and the public token, which scripts of our pages read. */
  pageData: { otherSites: 'none', prefetches: 'ownPages' },
  /**
   * An API. Links must work, because a login that returns to a proxied URL ends with a request that another site has started.
   */
  proxy: { otherSites: 'links', prefetches: 'ownPages', provesOrigin: true, destinations: HARMLESS_DESTINATIONS },
  /** A proxy rule with the option `no-links`, for an API in which a GET changes something. */
  proxyWithoutLinks: {
    otherSites: 'none',
    prefetches: 'ownPages',
    provesOrigin: true,
    destinations: HARMLESS_DESTINATIONS
  },
  /** The custom routes behind `requireTokens`. They may be pages, so links from other sites must work. */
  customRoute: { otherSites: 'links', prefetches: 'ownPages' },
  /** Whole web sites behind a gateway, with their links and their WebSockets. */
  forwardAuth: { otherSites: 'links', prefetches: 'ownPages', provesOrigin: true, acceptsUpgrades: true }
} as const satisfies Record<string, Policy>

const DESCRIPTIONS = {
  upgrade: () => 'This URL accepts no WebSockets and no other protocol upgrade.',
  prefetch: () => 'This URL must not be prefetched.',
  other_site: headers => `${STARTED_ELSEWHERE}: it sent ${quoted('Sec-Fetch-Site', headers)}.`,
  other_origin: headers => `${STARTED_ELSEWHERE}: it sent ${quoted('Origin', headers)}.`,
  not_a_navigation: () => 'Open this URL in the browser; a script cannot fetch it.',
  destination: () => 'This URL cannot be loaded as a script, a style sheet, a worker or a frame.',
  no_csrf_header: () =>
    'This request lacks the header that every request to this URL needs (setting apiProxy.csrfHeader). Links and forms cannot send it.',
  not_same_origin: () => 'This request changes something, but does not show that a page of the same origin sent it.',
  no_origin: () =>
    'Neither Sec-Fetch-Site nor Origin nor Referer shows that a page of the same origin sent this request.'
} as const satisfies Record<string, (headers: IncomingHttpHeaders) => string>

const STARTED_ELSEWHERE = 'The browser says that this request was started by another site'

/** Returns a header for a text. The client may have sent anything, so an unusual value is not repeated. */
function quoted(name: 'Sec-Fetch-Site' | 'Origin', headers: IncomingHttpHeaders): string {
  const value = String(headers[name.toLowerCase()])
  return `${name}: ${/^[\w.:/[\]-]{1,100}$/.test(value) ? value : '(an unusual value)'}`
}

/** The topic of the error page. All other rejections have the topic `refused`. */
const TOPICS: Partial<Record<OriginRejection, Refusal>> = {
  other_site: 'otherSite',
  other_origin: 'otherSite',
  not_a_navigation: 'byScript'
}

/** A GET of these may have an effect. */
const ACCEPT_NO_LINKS: readonly RoutePolicy[] = ['proxyWithoutLinks', 'logoutEverywhere']

const LINK_METHODS = ['GET', 'HEAD']
const SAFE_METHODS = [...LINK_METHODS, 'OPTIONS']

/**
 * Throws HttpError 403 if the request may not use the session. Call it before the session is used.
 * @example checkOrigin(ctx, 'customRoute', { publicOrigin: site.origin })
 */
export function checkOrigin(ctx: Pick<Context, 'method' | 'req'>, name: RoutePolicy, options: OriginOptions): void {
  const { headers } = ctx.req
  const rejection = rejectionOf({ methods: [ctx.method], headers }, name, options)
  if (rejection === undefined) return
  const description = DESCRIPTIONS[rejection](headers)
  // The page of the other topics has a link to the same URL, which would be a request of this site. A link of another site to a URL
  // that accepts no links must not get there with one more click.
  const topic = ACCEPT_NO_LINKS.includes(name) ? undefined : TOPICS[rejection]
  const refusal = topic ?? 'refused'
  throw new HttpError('cross_site_request', { reason: rejection, description, refusal })
}

/**
 * Returns the reason why a request may not use the session of its browser, or undefined if it may.
 * @example rejectionOf({ methods: ['GET'], headers }, 'forwardAuth', { publicOrigin: site.origin })
 */
export function rejectionOf(
  { methods, headers }: BrowserRequest,
  name: RoutePolicy,
  { publicOrigin, csrfHeader }: OriginOptions
): OriginRejection | undefined {
  const policy: Policy = POLICIES[name]
  // No link can send this header, so the other reasons do not matter.
  if (csrfHeader !== undefined && headers[csrfHeader.toLowerCase()] === undefined) return 'no_csrf_header'
  const site = headers['sec-fetch-site']
  const isSameOrigin = site === 'same-origin'
  const isUpgrade = isWebSocket(headers)
  if (isUpgrade && !policy.acceptsUpgrades) return 'upgrade'
  const isRejectedPrefetch =
    policy.prefetches === 'none' ? isPrefetch(headers) : isBrowserPrefetch(headers) && !isSameOrigin
  if (isRejectedPrefetch) return 'prefetch'
  const isLink = isDocument(headers) && methods.every(method => LINK_METHODS.includes(method))
  const acceptsLink = isLink && policy.otherSites !== 'none'
  // `none` means that the user entered the URL.
  const isOtherSite = site !== undefined && !isSameOrigin && site !== 'none'
  if (isOtherSite && policy.otherSites !== 'all' && !acceptsLink) return 'other_site'
  // A browser may keep the `Origin` of the provider's form when it follows the redirects after a login.
  const isOwn = acceptsLink || (isSameOrigin && !isUpgrade)
  if (!policy.ignoresOrigin && !isOwn && hasOtherOrigin(headers, publicOrigin)) return 'other_origin'
  const page = headers.origin ?? headers.referer ?? ''
  if (policy.namesOrigin && site === undefined && !hasOrigin(page, publicOrigin)) return 'no_origin'
  if (policy.navigationsOnly && !isNavigation(headers)) return 'not_a_navigation'
  const destination = headers['sec-fetch-dest']
  if (destination !== undefined && policy.destinations?.has(destination) === false) return 'destination'
  if (csrfHeader !== undefined) return undefined
  const needsProof = policy.provesOrigin && (isUpgrade || !methods.every(method => SAFE_METHODS.includes(method)))
  return needsProof && !isSameOrigin && headers.origin === undefined ? 'not_same_origin' : undefined
}

/**
 * True for a WebSocket handshake (RFC 6455 section 4.1). A proxy may remove the hop-by-hop header `Upgrade`, and HTTP/2 does not
 * have it, but every handshake contains `Sec-WebSocket-Version`. No page can send another protocol in `Upgrade`, and a server may
 * ignore it (RFC 9110 section 7.8), as Java's client expects for `h2c`.
 */
function isWebSocket({ upgrade = '', 'sec-websocket-version': version }: IncomingHttpHeaders): boolean {
  return /websocket/i.test(upgrade) || version !== undefined
}

/**
 * True if the request has an `Origin` that is not ours. Parsed origins are compared, because an origin may contain the
 * default port. The caller compares no `Origin` if `Sec-Fetch-Site` says that the page is ours: development gateways such as
 * Codespaces rewrite `Origin`, and a form sends `null` if its page has the policy `no-referrer` (Fetch, "append a request Origin
 * header"). No page of another origin can send this value, also in browsers without Fetch Metadata, because the names of
 * headers that begin with `Sec-` are forbidden for scripts.
 */
function hasOtherOrigin({ origin }: IncomingHttpHeaders, publicOrigin: string): boolean {
  return origin !== undefined && !hasOrigin(origin, publicOrigin)
}

function hasOrigin(url: string, origin: string): boolean {
  return URL.canParse(url) && new URL(url).origin === origin
}
