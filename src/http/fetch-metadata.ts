/**
 * Refuses requests by the headers of Fetch Metadata (W3C). Browsers send these headers, and pages cannot forge them. A
 * request without them is not refused.
 */
import type { Context, Middleware } from 'koa'
import { accessDenied } from './http-error.js'

function isForeign({ req }: Context): boolean {
  const site = req.headers['sec-fetch-site']
  return site === 'cross-site' || site === 'same-site'
}

/** For responses that only pages of this origin may read. Throws HttpError 403. */
export const sameOriginOnly: Middleware = function sameOriginOnly(ctx, next) {
  if (isForeign(ctx)) {
    throw accessDenied('Only pages of the same origin may read this address.')
  }
  return next()
}

// A browser may prefetch an address that nobody has opened. Sec-Purpose is the standard header. Chromium and Safari
// used to send Purpose, and Firefox sent X-Moz.
function isPrefetch({ req: { headers } }: Context): boolean {
  return `${headers['sec-purpose'] ?? headers.purpose ?? headers['x-moz'] ?? ''}`.includes('prefetch')
}

/**
 * For addresses that a person opens. Another site may not load them as an image, a frame or a script. Throws HttpError
 * 403.
 */
export const noForeignSubresource: Middleware = function noForeignSubresource(ctx, next) {
  const destination = ctx.get('Sec-Fetch-Dest')
  if (isForeign(ctx) && destination !== 'document' && destination !== '') {
    throw accessDenied('Another site may link to this address, but not load it in the background.')
  }
  return next()
}

/** For addresses that change something. A browser may not prefetch them. Throws HttpError 403. */
export const noPrefetch: Middleware = function noPrefetch(ctx, next) {
  if (isPrefetch(ctx)) throw accessDenied('This address must not be prefetched.')
  return next()
}

/** For addresses that a browser has to navigate to. Throws HttpError 403. */
export const navigationOnly: Middleware = function navigationOnly(ctx, next) {
  const mode = ctx.get('Sec-Fetch-Mode')
  if (mode !== '' && mode !== 'navigate') {
    throw accessDenied('Open this address in the browser; a script cannot fetch it.')
  }
  return next()
}
