/** The elements that all pages share: the style sheet, the icon, the Content-Security-Policy and the head. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Html, html, trusted } from './html.js'
import { builtInTemplate, type Template } from './template.js'

/**
 * The style of all built-in pages. The starter page loads the same file. Its colours follow the light or dark mode of
 * the system. Most logos are made for a white background, so logos have a white background even in dark mode. For the
 * same reason, an SVG logo that has a dark mode is always shown in its light mode.
 */
export const pageStyle = readFileSync(new URL('../../wwwroot/starter-base.css', import.meta.url), 'utf8')
  // Browsers convert each line break to a line feed before they compute the hash of a style. The server must compute
  // the hash of the same string.
  .replaceAll('\r\n', '\n')

export interface Page {
  /** The title of the tab, which screen readers announce. It is also the default heading. */
  readonly title: string
  readonly heading?: string
  readonly body: Html
}

/** The properties that all pages of a site share. */
interface PageFrame {
  /** The language tag of the page (BCP 47). */
  readonly language: string
  /** The name of the application, if the pages show it. */
  readonly name?: string | undefined
  /** The logo, or the name if there is no logo. */
  readonly brand?: Html | undefined
  /** The `style` element. */
  readonly style: Html
  /** The `link` element of the icon. */
  readonly icon: Html
  readonly template: Template
}

const builtInFrame: PageFrame = {
  language: 'en',
  style: styleElement(pageStyle),
  icon: iconElement(),
  template: builtInTemplate
}

/** Renders a complete page. The page runs no script and loads nothing, as its Content-Security-Policy requires. */
export function renderPage({ title, heading = title, body }: Page, frame: PageFrame = builtInFrame): string {
  const { language, name, brand, style, icon, template } = frame
  return template.render({
    lang: language,
    head: headOf(name === undefined ? title : `${title} – ${name}`, icon),
    style,
    title: heading,
    name: name ?? '',
    brand,
    content: html`<h1>${heading}</h1>\n${body}`
  })
}

/**
 * The style sheet must stay unchanged, including line breaks, because the Content-Security-Policy contains its hash.
 */
export function styleElement(style: string): Html {
  return html`<style>${trusted(style)}</style>`
}

/**
 * The icon of all built-in pages, a keyhole. It is embedded in each page as a data URL. Without an icon, the browser would
 * request /favicon.ico, and each error page would cause an additional 404 response.
 * @param colour a colour such as `#1d5fc2`
 */
export function iconElement(colour = '#1d5fc2'): Html {
  const icon = [
    'data:image/svg+xml,',
    '%3Csvg xmlns=%27http://www.w3.org/2000/svg%27 viewBox=%270 0 32 32%27%3E',
    `%3Crect width=%2732%27 height=%2732%27 rx=%278%27 fill=%27${encodeURIComponent(colour)}%27/%3E`,
    '%3Cpath d=%27M16 8a5 5 0 0 0-2.5 9.3L12 24h8l-1.5-6.7A5 5 0 0 0 16 8z%27 fill=%27%23fff%27/%3E%3C/svg%3E'
  ].join('')
  return html`<link rel="icon" href="${icon}">`
}

/**
 * Returns the Content-Security-Policy of the built-in pages. It allows only the inline styles of these pages and images
 * in `data:` URLs.
 * @param formTargets the allowed targets of forms; browsers also check redirects after a form, so the list must contain
 *   the origins of all redirects
 * @param styles the content of each `style` element of these pages
 */
export function securityPolicyFor(formTargets: readonly string[], styles: readonly string[] = [pageStyle]): string {
  const hashes = [...new Set(styles)].map(style => createHash('sha256').update(style).digest('base64'))
  return [
    "default-src 'none'",
    `style-src ${hashes.map(hash => `'sha256-${hash}'`).join(' ')}`,
    'img-src data:',
    `form-action ${formTargets.length === 0 ? "'none'" : formTargets.join(' ')}`,
    "frame-ancestors 'none'",
    "base-uri 'none'"
  ].join('; ')
}

function headOf(title: string, icon: Html): Html {
  return html`<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
${icon}`
}
