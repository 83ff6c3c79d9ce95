/**
 * The design and the texts of the pages that this server creates: the error pages, the diagnosis of a login loop, and
 * the pages of the demo identity provider. They share one style, run no script and load nothing. This folder imports no
 * other folder.
 */
export { type ErrorDetails, errorPage } from './error-page.js'
export { escapeHtml, type Html, html, toMarkup } from './html.js'
export { type LoginLoop, type LoginLoopDiagnosis, type LoginLoopReason, loginLoopPage } from './login-loop-page.js'
export { type Page, renderPage } from './page.js'
export { pageSecurityPolicy, pageStyle, securityPolicyFor } from './style.js'
