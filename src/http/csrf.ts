/**
 * Protection of the API proxy against other sites (CSRF). A browser adds the session cookie to requests that pages of other sites
 * cause, so the request itself must show that a page of this site asked (Fetch Metadata, RFC 6454, and optionally a custom header).
 */
import type { Context } from 'koa'
import { accessDenied } from './http-error.js'

export interface CsrfParts {
  /** Origin of the callback URL: where the pages of this site are. */
  readonly publicOrigin: string
  /** Name of a header that every request must carry, if one is configured. */
  readonly csrfHeader: string | undefined
}

const SAFE_METHODS = new Set(['GET', 'HEAD'])

// What a page shows or reads. Anything that would run in the page (script, style, worker, frame …) is missing on purpose.
const HARMLESS_DESTINATIONS = new Set(['empty', 'image', 'audio', 'video', 'track', 'font', 'document'])

/** Returns a function that throws HttpError 403 for a request that a page of this site did not make. */
export function createCsrfCheck({ publicOrigin, csrfHeader }: CsrfParts): (ctx: Context) => void {
  const headerName = csrfHeader?.toLowerCase()

  return function checkCsrf({ req, method }) {
    const { headers } = req
    const site = headers['sec-fetch-site']
    // `none` is a person at the address bar. Browsers know no further values beside those of other sites.
    if (site !== undefined && site !== 'same-origin' && site !== 'none') {
      throw accessDenied('This address answers pages of its own origin only.')
    }
    const destination = headers['sec-fetch-dest']
    if (destination !== undefined && !HARMLESS_DESTINATIONS.has(String(destination))) {
      throw accessDenied('This address cannot be loaded as a script, a style sheet, a worker or a frame.')
    }
    if (headerName !== undefined) {
      if (headers[headerName] === undefined)
        throw accessDenied(`Requests to this address need the header ${csrfHeader}.`)
      return
    }
    if (SAFE_METHODS.has(method) || site === 'same-origin') return
    if (headers.origin === undefined || !isSameOrigin(headers.origin, publicOrigin)) {
      throw accessDenied('This address changes things for pages of its own origin only.')
    }
  }
}

/** Compares origins parsed, because a default port may be spelled out. An opaque origin, `null`, equals none. */
function isSameOrigin(sent: string, publicOrigin: string): boolean {
  return URL.canParse(sent) && new URL(sent).origin === publicOrigin
}
