/**
 * Recognizes what a browser will do with a response: show it in a tab, give it to a script, or keep it in case the user opens
 * the URL later.
 */
import type { IncomingHttpHeaders } from 'node:http'

/**
 * True if the browser opens the response in a tab or a frame. Browsers that send no Fetch Metadata, for example over plain http, accept HTML
 * in a navigation, and scripts usually do not.
 */
export function opensDocument(method: string, headers: IncomingHttpHeaders): boolean {
  const { accept, 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers
  if (!prefersHtml(accept)) return false
  if (mode === undefined && destination === undefined) {
    // Android WebViews send the name of their application in every request, also in navigations.
    return (method === 'GET' || method === 'POST') && !/^xmlhttprequest$/i.test(String(headers['x-requested-with']))
  }
  return isDocument(headers) || isReissued(headers) || frameOf(headers) !== undefined
}

/**
 * True if Fetch Metadata says that the browser opens the response in a tab. If a service worker passes a navigation on, with
 * `fetch(event.request)`, Chromium sends the destination `empty`. No script can send the mode `navigate` in another way.
 */
export function isDocument(headers: IncomingHttpHeaders): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = headers
  return mode === 'navigate' && (destination === 'document' || destination === 'empty')
}

/** Returns the site whose page shows the response in a frame, or undefined if the response is not for a frame. */
export function frameOf(headers: IncomingHttpHeaders): 'own' | 'other' | undefined {
  if (!FRAMES.includes(String(headers['sec-fetch-dest']))) return undefined
  return headers['sec-fetch-site'] === 'same-origin' ? 'own' : 'other'
}

const FRAMES = ['iframe', 'frame', 'embed', 'object']

/** True unless Fetch Metadata says that a script or an element of a page loads the URL. */
export function isNavigation(headers: IncomingHttpHeaders): boolean {
  return (headers['sec-fetch-mode'] ?? 'navigate') === 'navigate' || isReissued(headers)
}

/**
 * True if a service worker has probably sent a navigation again, with options such as `cache`. The mode is then `same-origin`, but the
 * `Accept` is that of the navigation.
 */
function isReissued({ accept, 'sec-fetch-mode': mode }: IncomingHttpHeaders): boolean {
  return mode === 'same-origin' && prefersHtml(accept)
}

/** True if HTML has a higher quality value than JSON (RFC 9110 section 12.5.1). */
function prefersHtml(accept = ''): boolean {
  const qualities = new Map(accept.split(',').map(range => qualityOf(range.toLowerCase().split(';'))))
  const quality = (type: string) =>
    qualities.get(type) ?? qualities.get(`${type.split('/')[0]}/*`) ?? qualities.get('*/*') ?? 0
  return quality('text/html') > quality('application/json')
}

function qualityOf([type = '', ...parameters]: readonly string[]): readonly [type: string, quality: number] {
  const [, quality = 1] = /;\s*q=([\d.]+)/.exec(`;${parameters.join(';')}`) ?? []
  return [type.trim(), Number(quality)]
}

/**
 * True if a browser has marked the request as a prefetch. A page can add such a mark only to requests to its own origin. Sec-Purpose
 * is the standard header. Chromium and Safari used to send Purpose, and Firefox sent X-Moz.
 */
export function isBrowserPrefetch(headers: IncomingHttpHeaders): boolean {
  return hasPurpose(headers, ['sec-purpose', 'purpose', 'x-moz'])
}

/** True if a browser or a framework has marked the request as a prefetch. Turbo sends X-Sec-Purpose. */
export function isPrefetch(headers: IncomingHttpHeaders): boolean {
  const isOfNext = NEXT_PREFETCHES.some(name => headers[name] !== undefined)
  return isOfNext || isBrowserPrefetch(headers) || hasPurpose(headers, ['x-purpose', 'x-sec-purpose'])
}

const NEXT_PREFETCHES = ['next-router-prefetch', 'next-router-segment-prefetch']

function hasPurpose(headers: IncomingHttpHeaders, names: readonly string[]): boolean {
  return names.some(name => headers[name] !== undefined && /prefetch|prerender|preview/i.test(String(headers[name])))
}
