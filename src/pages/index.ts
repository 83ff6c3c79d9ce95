/**
 * The design and the texts of the pages that this server creates: the error pages, the diagnosis of a login loop, and
 * the pages of the demo identity provider. They share one style, run no script and load nothing. `texts/` has the texts by
 * language, and `custom/` reads the logo, the texts and the templates of an operator.
 */
export { PageFilesError, readLogo } from './custom/files.js'
export { readPagesFolder } from './custom/folder.js'
export type { ErrorDetails, LoginLoop, LoginLoopDiagnosis, LoginLoopReason } from './error-page.js'
export { type Html, html } from './html.js'
export { pageStyle, renderPage, securityPolicyFor } from './page.js'
export { createPages, type PagesSettings, type SitePages } from './site-pages.js'
