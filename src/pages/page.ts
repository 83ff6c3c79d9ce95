import { type Html, html, trusted } from './html.js'
import { pageIcon, pageStyle } from './style.js'
import { ownTemplate, type Template } from './template.js'

export interface Page {
  /** The title of the tab, which screen readers announce. It is also the default heading. */
  readonly title: string
  readonly heading?: string
  readonly body: Html
}

/** What all pages of a site have in common. */
export interface PageFrame {
  /** The language tag of the page (BCP 47). */
  readonly language: string
  /** The name of the application, if the pages show it. */
  readonly name?: string | undefined
  /** The logo, or the name if there is no logo. */
  readonly brand?: Html | undefined
  /** The element `style`. */
  readonly style: Html
  /** The element of the icon. */
  readonly icon: Html
  readonly template: Template
}

const ownFrame: PageFrame = {
  language: 'en',
  style: styleElement(pageStyle),
  icon: iconElement(pageIcon()),
  template: ownTemplate
}

/** Renders a complete page. The page runs no script and loads nothing, as its Content-Security-Policy requires. */
export function renderPage({ title, heading = title, body }: Page, frame: PageFrame = ownFrame): string {
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

/** The style sheet must stay unchanged, including line breaks, because the Content-Security-Policy contains its hash. */
export function styleElement(style: string): Html {
  return html`<style>${trusted(style)}</style>`
}

/**
 * The icon is part of the page. Otherwise the browser would request /favicon.ico, and each error page would cause an
 * additional 404 response.
 * @param icon a `data:` URL
 */
export function iconElement(icon: string): Html {
  return html`<link rel="icon" href="${icon}">`
}

/**
 * @param name the name of the application
 * @param logo a `data:` URL, if there is a logo
 */
export function brandElement(name: string, logo: string | undefined): Html {
  return html`<p class="brand">${logo === undefined ? name : html`<img src="${logo}" alt="${name}">`}</p>`
}

function headOf(title: string, icon: Html): Html {
  return html`<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
${icon}`
}
