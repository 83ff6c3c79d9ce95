/**
 * The design and the texts of the pages that this server creates: the error pages, the diagnosis of a login loop, and
 * the pages of the demo identity provider. They share one style and load nothing.
 *
 * - `html`, `template`, `page`: safe markup, the template, and what all pages share; `colour` is the operator's accent colour
 * - `error-page`: the error pages and the diagnosis of a login loop; `site-pages`: the pages with the operator's design
 * - `texts`: the built-in texts, one file in `texts/` for each language
 * - `custom-folder`, `custom-files`, `custom-texts`: the logo, the templates and the texts of the operator
 * - `client/`: the module that the operator's pages can import, and the script of the error pages
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

export { PageFilesError, readLogo } from './custom-files.js'
export { readPagesFolder } from './custom-folder.js'
export type { ErrorDetails, LoginLoop, LoginLoopDiagnosis, LoginLoopReason, Refusal, SentCookie } from './error-page.js'
export { EXPLANATIONS } from './error-page.js'
export { type Html, html } from './html.js'
export { pageScript, pageStyle, renderPage, securityPolicyFor } from './page.js'
export { createPages, type Pages } from './site-pages.js'

const clientText = readFileSync(new URL('../../src/pages/client/client.js', import.meta.url), 'utf8')

/** The module that the server serves as `/api/auth/client.js`. */
export const clientModule = {
  text: clientText,
  etag: createHash('sha256').update(clientText).digest('base64url')
}
