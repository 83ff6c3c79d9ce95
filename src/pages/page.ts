import { type Html, html, toMarkup, trusted } from './html.js'
import { pageIcon, pageStyle } from './style.js'

export interface Page {
  /** The title of the tab, which screen readers announce. It is also the default heading. */
  readonly title: string
  readonly heading?: string
  readonly body: Html
}

/** Renders a complete page. The page runs no script and loads nothing, as `pageSecurityPolicy` requires. */
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

// The icon is part of the page. Otherwise the browser would request /favicon.ico, and each error page would cause an
// additional 404 response.
const icon = html`<link rel="icon" href="${pageIcon}">`

// The style sheet must stay unchanged, including line breaks, because the Content-Security-Policy contains its hash.
const style = html`<style>${trusted(pageStyle)}</style>`
