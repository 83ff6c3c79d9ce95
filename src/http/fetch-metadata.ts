/** Refusals by Fetch Metadata (W3C), which browsers send and pages cannot forge. Without these headers nothing is refused. */
import type { Context, Middleware } from 'koa'
import { HttpError } from './errors.js'

function isForeign({ req }: Context): boolean {
  const site = req.headers['sec-fetch-site']
  return site === 'cross-site' || site === 'same-site'
}

/** For answers that only pages of this origin may read. */
export const sameOriginOnly: Middleware = function sameOriginOnly(ctx, next) {
  if (isForeign(ctx)) {
    throw new HttpError(403, 'access_denied', 'This address answers pages of its own origin only.')
  }
  return next()
}

// A browser or a proxy that loads ahead what somebody may click on has no one behind it yet (Fetch Metadata, Sec-Purpose).
function isAhead({ req }: Context): boolean {
  return `${req.headers['sec-purpose'] ?? req.headers.purpose ?? ''}`.includes('prefetch')
}

/** For addresses a person goes to: an image, a frame or a script of another site must not. */
export const noForeignSubresource: Middleware = function noForeignSubresource(ctx, next) {
  const destination = ctx.get('Sec-Fetch-Dest')
  if (isForeign(ctx) && destination !== 'document' && destination !== '') {
    throw new HttpError(
      403,
      'access_denied',
      'Another site may link to this address, but not load it in the background.'
    )
  }
  return next()
}

/** For addresses that do something: they are not to be loaded before anyone asked for them. */
export const notAhead: Middleware = function notAhead(ctx, next) {
  if (isAhead(ctx)) throw new HttpError(403, 'access_denied', 'This address must not be loaded ahead.')
  return next()
}

/** For addresses that only make sense as a place to go to. */
export const navigationOnly: Middleware = function navigationOnly(ctx, next) {
  const mode = ctx.get('Sec-Fetch-Mode')
  if (mode !== '' && mode !== 'navigate') {
    throw new HttpError(403, 'access_denied', 'Go to this address with the browser; it cannot be fetched by a script.')
  }
  return next()
}
