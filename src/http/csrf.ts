/**
 * Protects the API proxy against cross-site request forgery. A browser may send the session cookie even if a page of
 * another site caused the request. Therefore the check uses headers that other sites cannot forge: Fetch Metadata,
 * `Origin` (RFC 6454) and optionally a custom header.
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

// Values of `Sec-Fetch-Dest` for content that a page shows or reads. Scripts, style sheets, workers and frames are
// missing, because their content would take effect in the page.
const HARMLESS_DESTINATIONS = new Set(['empty', 'image', 'audio', 'video', 'track', 'font', 'document'])

/**
 * Returns a function that throws HttpError 403 for a request that a page of another origin may have caused. It also throws
 * if the browser would use the response as a script, a style sheet, a worker or a frame.
 */
export function createCsrfCheck({ publicOrigin, csrfHeader }: CsrfParts): (ctx: Context) => void {
  const headerName = csrfHeader?.toLowerCase()

  return function checkCsrf({ req, method }) {
    const { headers } = req
    const site = headers['sec-fetch-site']
    // `none` means that a person entered the address. `same-site` and `cross-site` mean that another origin caused the
    // request.
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

/** Compares parsed origins, because an origin may contain the default port. `Origin: null` equals no origin. */
function isSameOrigin(sent: string, publicOrigin: string): boolean {
  return URL.canParse(sent) && new URL(sent).origin === publicOrigin
}
