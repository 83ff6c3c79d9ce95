/** The elements that all pages share: the style sheet, the script, the icon, the Content-Security-Policy and the head. */
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

/** The script of the error pages. */
export const pageScript = readFileSync(new URL('../../src/pages/client/page-script.js', import.meta.url), 'utf8')
  // As for the style sheet, the hash is that of the text with line feeds.
  .replaceAll('\r\n', '\n')

export interface Page {
  /** The title of the tab, which screen readers announce. It is also the default heading. */
  readonly title: string
  readonly heading?: string
  readonly body: Html
  /** If the browser runs no scripts, it opens this path, or the page itself, after these seconds. */
  readonly refresh?: { readonly seconds: number; readonly path: string | undefined } | undefined
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
  /** The `script` element, if the page has one. */
  readonly script?: Html
  readonly template: Template
}

const builtInFrame: PageFrame = {
  language: 'en',
  style: styleElement(pageStyle),
  icon: iconElement(),
  template: builtInTemplate
}

/** Renders a complete page. The page loads nothing, as its Content-Security-Policy requires. */
export function renderPage({ title, heading = title, body, refresh }: Page, frame: PageFrame = builtInFrame): string {
  const { language, name, brand, style, icon, script, template } = frame
  return template.render({
    lang: language,
    dir: directionOf(language),
    head: headOf(name === undefined ? title : `${title} – ${name}`, icon, script, refresh),
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

/** The script runs when the page is complete, because it is a module. */
export function scriptElement(script: string): Html {
  // Not a tagged template, because bundlers compile those with this end tag to a helper of a package.
  return trusted(`\n<script type="module">${script}</script>`)
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

interface PolicyOptions {
  /**
   * The allowed targets of forms. Browsers also check redirects after a form, so the list must contain the origins of all
   * redirects.
   */
  readonly formTargets?: readonly string[]
  /** The content of each `style` element of these pages. */
  readonly styles?: readonly string[]
  /** The content of the `script` element. It may send requests to its own origin. */
  readonly script?: string
  /** Who may show the page in a frame. */
  readonly ancestors?: "'none'" | "'self'" | '*'
}

/**
 * Returns the Content-Security-Policy of the built-in pages. It allows only the inline styles and the inline script of these pages,
 * and images in `data:` URLs.
 */
export function securityPolicyFor(options: PolicyOptions = {}): string {
  const { formTargets = [], styles = [pageStyle], script, ancestors = "'none'" } = options
  const hashes = (texts: readonly string[]) =>
    [...new Set(texts)].map(text => `'sha256-${createHash('sha256').update(text).digest('base64')}'`).join(' ')
  return [
    "default-src 'none'",
    `style-src ${hashes(styles)}`,
    ...(script === undefined ? [] : [`script-src ${hashes([script])}`, "connect-src 'self'"]),
    'img-src data:',
    `form-action ${formTargets.length === 0 ? "'none'" : formTargets.join(' ')}`,
    `frame-ancestors ${ancestors}`,
    "base-uri 'none'"
  ].join('; ')
}

function headOf(title: string, icon: Html, script: Html | undefined, refresh: Page['refresh']): Html {
  const target = refresh?.path === undefined ? '' : `; url=${refresh.path}`
  return html`<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
${icon}${refresh && html`\n<noscript><meta http-equiv="refresh" content="${refresh.seconds}${target}"></noscript>`}${script}`
}

/** Returns the direction in which a language is written, from its script (ISO 15924). */
function directionOf(language: string): 'ltr' | 'rtl' {
  const { script = '' } = new Intl.Locale(language).maximize()
  return /^(Adlm|Arab|Hebr|Mand|Nkoo|Rohg|Samr|Syrc|Thaa)$/.test(script) ? 'rtl' : 'ltr'
}
