/** Refusals by Fetch Metadata (W3C), which browsers send and pages cannot forge. Without these headers nothing is refused. */
import type { Middleware } from 'koa'
import { HttpError } from './errors.js'

const FOREIGN_SITES = new Set(['cross-site', 'same-site'])

/** For answers that only pages of this origin may read. */
export const sameOriginOnly: Middleware = async function sameOriginOnly(ctx, next) {
  if (FOREIGN_SITES.has(ctx.get('Sec-Fetch-Site'))) {
    throw new HttpError(403, 'access_denied', 'This address answers pages of its own origin only.')
  }
  await next()
}

/** For addresses a person goes to: an image, a frame or a script of another site must not. */
export const noForeignSubresource: Middleware = async function noForeignSubresource(ctx, next) {
  const destination = ctx.get('Sec-Fetch-Dest')
  if (FOREIGN_SITES.has(ctx.get('Sec-Fetch-Site')) && destination !== 'document' && destination !== '') {
    throw new HttpError(
      403,
      'access_denied',
      'Another site may link to this address, but not load it in the background.'
    )
  }
  await next()
}

/** For addresses that only make sense as a place to go to. */
export const navigationOnly: Middleware = async function navigationOnly(ctx, next) {
  const mode = ctx.get('Sec-Fetch-Mode')
  if (mode !== '' && mode !== 'navigate') {
    throw new HttpError(403, 'access_denied', 'Go to this address with the browser; it cannot be fetched by a script.')
  }
  await next()
}
