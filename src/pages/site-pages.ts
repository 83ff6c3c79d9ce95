/** The pages of a site: our own pages, with the name, logo, colour, texts and templates of the operator. */
import { accentStyle } from './colour.js'
import { emptyFolder, readPagesFolder } from './custom/folder.js'
import { readLogo } from './custom/logo.js'
import { type ErrorDetails, errorPage } from './error-page.js'
import { type LoginLoop, loginLoopPage } from './login-loop-page.js'
import { brandElement, iconElement, type Page, type PageFrame, renderPage, styleElement } from './page.js'
import { brandStyle, pageIcon, pageStyle, securityPolicyFor } from './style.js'
import { ownTemplate } from './template.js'
import { ownTexts } from './texts/index.js'
import type { Texts } from './texts/texts.js'

/** The settings `pages.…`. The paths are absolute. */
export interface PagesSettings {
  readonly name?: string | undefined
  readonly logo?: string | undefined
  /** A colour such as `#1d5fc2`. */
  readonly accent?: string | undefined
  readonly folder?: string | undefined
}

export interface SitePages {
  /** The language tags of the pages (BCP 47). The first one is for people who accept none of these languages. */
  readonly languages: readonly [string, ...string[]]
  /** The Content-Security-Policy of the pages. */
  readonly securityPolicy: string
  /** @param language one of `languages` */
  errorPage(details: ErrorDetails, language: string): string
  /** @param language one of `languages` */
  loginLoopPage(loop: LoginLoop, language: string): string
}

/**
 * Reads the files of the operator once, so that a request only fills in its values.
 * @throws {PageFilesError} if one of the files cannot be used
 */
export function createPages(settings: PagesSettings = {}): SitePages {
  const { name, accent, folder } = settings
  const logo = settings.logo === undefined ? undefined : readLogo(settings.logo)
  const { texts, templates } = folder === undefined ? emptyFolder : readPagesFolder(folder)
  const all = new Map<string, Texts>([...Object.entries(ownTexts), ...texts])
  const style = [pageStyle, name === undefined ? '' : brandStyle, accent === undefined ? '' : accentStyle(accent)].join(
    ''
  )
  const shared = {
    name,
    brand: name === undefined ? undefined : brandElement(name, logo),
    style: styleElement(style),
    icon: iconElement(pageIcon(accent))
  }
  const frames = new Map<string, PageFrame>(
    [...all.keys()].map(language => {
      const template = templates.get(language) ?? templates.get('') ?? ownTemplate
      return [language, { ...shared, language, template }]
    })
  )
  const styles = [style, ...[...templates.values()].flatMap(template => template.styles)]

  function render(language: string, create: (texts: Texts) => Page): string {
    return renderPage(create(all.get(language) as Texts), frames.get(language))
  }

  return {
    languages: [...all.keys()] as [string, ...string[]],
    securityPolicy: securityPolicyFor([], styles),
    errorPage: (details, language) => render(language, texts => errorPage(details, texts, language)),
    loginLoopPage: (loop, language) => render(language, texts => loginLoopPage(loop, texts))
  }
}
