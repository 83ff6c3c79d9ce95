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
interface PagesSettings {
  readonly name?: string | undefined
  readonly logo?: string | undefined
  /** A colour such as `#1d5fc2`. */
  readonly color?: string | undefined
  readonly folder?: string | undefined
}

export interface Pages {
  /**
   * Returns the tag (BCP 47) of the language in which a user gets the pages.
   * @param accepted the language tags that the user accepts, with the preferred tag first
   */
  languageFor(accepted: readonly string[]): string
  /** The Content-Security-Policy of the pages. Only this site may show them in a frame. */
  readonly securityPolicy: string
  /** The Content-Security-Policy of the error page for a frame of another site. */
  readonly policyInFrame: string
  /** @param language the result of `languageFor` */
  errorPage(details: ErrorDetails, language: string): string
  /** @param language the result of `languageFor` */
  loginLoopPage(loop: LoginLoop, language: string): string
}

/**
 * Reads the operator's files once, so that no request has to read them.
 * @throws {PageFilesError} if one of the files cannot be used
 */
export function createPages(settings: PagesSettings = {}): Pages {
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
    languageFor: languageChoice([...all.keys()] as [string, ...string[]]),
    securityPolicy: securityPolicyFor({ styles, script: pageScript, ancestors: "'self'" }),
    policyInFrame: securityPolicyFor({ styles, script: pageScript, ancestors: '*' }),
    errorPage: (details, language) => render(language, texts => errorPage(details, texts, language)),
    loginLoopPage: (loop, language) => render(language, texts => loginLoopPage(loop, texts))
  }
}

// The logo is a `data:` URL.
function brandElement(name: string, logo: string | undefined): Html {
  return html`<p class="brand">${logo === undefined ? name : html`<img src="${logo}" alt="${name}">`}</p>`
}
