/** The built-in pages with the operator's name, logo, colour, texts and templates. */
import { accentStyle } from './colour.js'
import { readLogo } from './custom-files.js'
import { emptyFolder, readPagesFolder } from './custom-folder.js'
import { type ErrorDetails, errorPage, type LoginLoop, loginLoopPage } from './error-page.js'
import { type Html, html } from './html.js'
import {
  iconElement,
  type Page,
  pageScript,
  pageStyle,
  renderPage,
  scriptElement,
  securityPolicyFor,
  styleElement
} from './page.js'
import { builtInTemplate } from './template.js'
import { builtInTexts, languageChoice, type Texts } from './texts.js'

/** The settings `branding.…`. The paths are absolute. */
type PagesSettings = Readonly<Partial<Record<'name' | 'logo' | 'color' | 'folder', string | undefined>>>

export type Pages = ReturnType<typeof createPages>

/**
 * Reads the operator's files once, so that no request has to read them.
 * @throws {PageFilesError} if one of the files cannot be used
 */
export function createPages(settings: PagesSettings = {}) {
  const { name, color, folder } = settings
  const logo = settings.logo === undefined ? undefined : readLogo(settings.logo)
  const { texts, templates } = folder === undefined ? emptyFolder : readPagesFolder(folder)
  const all = new Map<string, Texts>([...Object.entries(builtInTexts), ...texts])
  const style = pageStyle + (color === undefined ? '' : accentStyle(color))
  const shared = {
    name,
    brand: name === undefined ? undefined : brandElement(name, logo),
    style: styleElement(style),
    icon: iconElement(color),
    script: scriptElement(pageScript)
  }
  const styles = [style, ...[...templates.values()].flatMap(template => template.styles)]

  function render(language: string, create: (texts: Texts) => Page): string {
    const template = templates.get(language) ?? templates.get('') ?? builtInTemplate
    return renderPage(create(all.get(language) as Texts), { ...shared, language, template })
  }

  return {
    /**
     * Returns the tag (BCP 47) of the language in which a user gets the pages.
     * @param accepted the language tags that the user accepts, with the preferred tag first
     */
    languageFor: languageChoice([...all.keys()] as [string, ...string[]]),
    /** The Content-Security-Policy of the pages. Only this site may show them in a frame. */
    securityPolicy: securityPolicyFor({ styles, script: pageScript, ancestors: "'self'" }),
    /** The Content-Security-Policy of the error page for a frame of another site. */
    policyInFrame: securityPolicyFor({ styles, script: pageScript, ancestors: '*' }),
    /** @param language the result of `languageFor` */
    errorPage: (details: ErrorDetails, language: string) =>
      render(language, texts => errorPage(details, texts, language)),
    /** @param language the result of `languageFor` */
    loginLoopPage: (loop: LoginLoop, language: string) => render(language, texts => loginLoopPage(loop, texts))
  }
}

// The logo is a `data:` URL.
function brandElement(name: string, logo: string | undefined): Html {
  return html`<p class="brand">${logo === undefined ? name : html`<img src="${logo}" alt="${name}">`}</p>`
}
