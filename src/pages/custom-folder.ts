import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { whyUnreadable } from '../base/text-file.js'
import { fileError, PageFilesError, readText } from './custom-files.js'
import { parseTexts } from './custom-texts.js'
import { parseTemplate, type Template } from './template.js'
import { builtInTexts, type Texts } from './texts.js'

/** The operator's templates and texts. */
interface PagesFolder {
  /** By language tag, for each language that has a file of texts. */
  readonly texts: ReadonlyMap<string, Texts>
  /** By language tag. The template with the key `''` is for all languages that have no template. */
  readonly templates: ReadonlyMap<string, Template>
}

export const emptyFolder: PagesFolder = { texts: new Map(), templates: new Map() }

const MAX_BYTES = 64 * 1024
const allowedNames = 'Use page.html, or a name with a language tag, such as page.de.html or de.json.'

/**
 * Reads all templates and texts of a folder. A file whose name ends neither in `.html` nor in `.json` is ignored.
 * @throws {PageFilesError} with all problems, if the folder or one of its files cannot be used
 */
export function readPagesFolder(folder: string): PagesFolder {
  const texts = new Map<string, Texts>()
  const templates = new Map<string, Template>()
  const problems: string[] = []
  for (const name of fileNamesIn(folder)) {
    const path = join(folder, name)
    try {
      const template = /^page(?:\.(.+))?\.html$/.exec(name)
      const language = template ? template[1] : name.slice(0, -'.json'.length)
      if ((!template && !name.endsWith('.json')) || (language !== undefined && !isLanguage(language))) {
        throw fileError(path, `has a name that the server does not know. ${allowedNames}`)
      }
      const content = readText(path, MAX_BYTES)
      if (template) templates.set(language ?? '', parseTemplate(content, path))
      else if (language !== undefined) texts.set(language, parseTexts(content, path, language))
    } catch (error) {
      if (!(error instanceof PageFilesError)) throw error
      problems.push(...error.problems)
    }
  }
  if (problems.length === 0) problems.push(...templatesWithoutTexts(folder, { texts, templates }))
  if (problems.length > 0) throw new PageFilesError(problems)
  return { texts, templates }
}

// A folder that Kubernetes mounts from a ConfigMap also contains names that begin with two dots, so such names are
// ignored.
function fileNamesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter(name => /\.(html|json)$/i.test(name) && !name.startsWith('.'))
  } catch (error) {
    throw new PageFilesError([
      `the folder ${folder} cannot be read, because ${whyUnreadable(error)}. Use the path of a folder.`
    ])
  }
}

function templatesWithoutTexts(folder: string, { texts, templates }: PagesFolder): string[] {
  const languages = ['', ...Object.keys(builtInTexts), ...texts.keys()]
  const lonely = [...templates.keys()].filter(language => !languages.includes(language))
  return lonely.map(
    language =>
      `the file ${join(folder, `page.${language}.html`)} has no effect without texts in this language. Add ${language}.json with all texts.`
  )
}

// The canonical spelling, such as pt-BR, is required. Otherwise pt-br.json and pt-BR.json could exist side by side.
function isLanguage(tag: string): boolean {
  if (!/^[a-z]{2,3}(-[A-Za-z0-9]+)*$/.test(tag)) return false
  try {
    return Intl.getCanonicalLocales(tag)[0] === tag
  } catch {
    return false
  }
}
