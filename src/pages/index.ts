/**
 * The look and the wording of the pages we write ourselves: the error pages, the diagnosis of a login loop, and what the demo
 * identity provider shows. One style, no script, nothing loaded from elsewhere. The lowest layer: it imports nothing of ours.
 */
export { type ErrorDetails, errorPage } from './error-page.js'
export { escapeHtml, type Html, html, toMarkup } from './html.js'
export { type LoginLoop, type LoginLoopReason, loginLoopPage } from './login-loop-page.js'
export { type Page, renderPage } from './page.js'
export { pageSecurityPolicy, pageStyle, securityPolicyFor } from './style.js'
