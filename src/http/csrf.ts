/**
 * Protects the API proxy against other sites (CSRF). A browser adds the session cookie even to requests that pages of other
 * sites cause. So the request itself must show that a page of this site made it (Fetch Metadata, RFC 6454, and optionally a
 * custom header).
 */
import type { Context } from 'koa'
import { accessDenied } from './http-error.js'

export interface CsrfParts {
  /** The origin of the callback URL, which is the origin of this site's pages. */
  readonly publicOrigin: string
  /** The name of a header that every request must have, if one is configured. */
  readonly csrfHeader: string | undefined
}

const SAFE_METHODS = new Set(['GET', 'HEAD'])

// The destinations of content that a page shows or reads. Content that would run in the page, such as a script, a style
// sheet, a worker or a frame, is not listed.
const HARMLESS_DESTINATIONS = new Set(['empty', 'image', 'audio', 'video', 'track', 'font', 'document'])

/** Returns a function that throws HttpError 403 for a request that a page of this site did not make. */
export function createCsrfCheck({ publicOrigin, csrfHeader }: CsrfParts): (ctx: Context) => void {
  const headerName = csrfHeader?.toLowerCase()

  return function checkCsrf({ req, method }) {
    const { headers } = req
    const site = headers['sec-fetch-site']
    // `none` means that a person entered the address. All other values name other sites.
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

/** Compares parsed origins, because a default port may be written explicitly. The opaque origin `null` equals no origin. */
function isSameOrigin(sent: string, publicOrigin: string): boolean {
  return URL.canParse(sent) && new URL(sent).origin === publicOrigin
}
