/**
 * Refuses requests because of their Fetch Metadata headers (W3C). Browsers send these headers, and pages cannot forge
 * them. A request without these headers is not refused.
 */
import type { Context, Middleware } from 'koa'
import { accessDenied } from './http-error.js'

function isForeign({ req }: Context): boolean {
  const site = req.headers['sec-fetch-site']
  return site === 'cross-site' || site === 'same-site'
}

/** Throws HttpError 403 if a page of another origin sent the request. */
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
 * Throws HttpError 403 if a page of another origin loads the address as an image, a frame or a script. Such a page may
 * still link to the address.
 */
export const noForeignSubresource: Middleware = function noForeignSubresource(ctx, next) {
  const destination = ctx.get('Sec-Fetch-Dest')
  if (isForeign(ctx) && destination !== 'document' && destination !== '') {
    throw accessDenied('Another site may link to this address, but not load it in the background.')
  }
  return next()
}

/** Throws HttpError 403 if a browser prefetches the address. This is for addresses that change something. */
export const noPrefetch: Middleware = function noPrefetch(ctx, next) {
  if (isPrefetch(ctx)) throw accessDenied('This address must not be prefetched.')
  return next()
}

/** Throws HttpError 403 unless the browser navigates to the address. Scripts cannot fetch it. */
export const navigationOnly: Middleware = function navigationOnly(ctx, next) {
  const mode = ctx.get('Sec-Fetch-Mode')
  if (mode !== '' && mode !== 'navigate') {
    throw accessDenied('Open this address in the browser; a script cannot fetch it.')
  }
  return next()
}
