import { type Html, html, toMarkup, trusted } from './html.js'
import { pageIcon, pageStyle } from './style.js'

export interface Page {
  /** What the tab and a screen reader announce; also the heading, unless that is given on its own. */
  readonly title: string
  readonly heading?: string
  readonly body: Html
}

/** A whole page: no script, nothing loaded from anywhere, fit for `pageSecurityPolicy`. */
export function renderPage({ title, heading = title, body }: Page): string {
  return toMarkup(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
${icon}
${style}
</head>
<body>
<main>
<h1>${heading}</h1>
${body}
</main>
</body>
</html>
`)
}

// Inside the page, or the browser would ask for /favicon.ico and leave a 404 behind every error.
const icon = html`<link rel="icon" href="${pageIcon}">`

// As it is, without a line break more: the policy names the hash of exactly this text.
const style = html`<style>${trusted(pageStyle)}</style>`
