/**
 * The built-in texts of the pages. Each language is a JSON file in the format that operators use for custom texts. The
 * English file defines the keys and the placeholders of all languages.
 */
import de from './texts/de.json' with { type: 'json' }
import en from './texts/en.json' with { type: 'json' }
import fr from './texts/fr.json' with { type: 'json' }
import ja from './texts/ja.json' with { type: 'json' }
import zh from './texts/zh.json' with { type: 'json' }

// With this constant, the compiler writes out its type in the published declarations (`.d.ts`). With `typeof en`, the
// declarations would import a JSON file.
export const english = en

/** All texts of the pages in one language, by group and key. */
export type Texts = typeof english

/** By language tag (BCP 47). Users who accept none of these languages get the first language. */
export const builtInTexts: Readonly<Record<string, Texts>> = { en, de, fr, ja, zh }

/**
 * Creates the function that chooses the language of a page. The function gets the language tags of `Accept-Language`,
 * with the preferred tag first. A tag matches only a language with the same script. For example, users who accept
 * `zh-TW` read Traditional Chinese, so they do not get `zh`, which is Simplified Chinese.
 * @param languages the tags of the available languages; users who accept none of them get the first language
 */
export function languageChoice(languages: readonly [string, ...string[]]) {
  // The first use of Intl.Locale takes milliseconds, so it happens at the first request and does not delay the start.
  let offered: { tag: string; written: string | undefined }[] | undefined

  return function languageFor(accepted: readonly string[]): string {
    offered ??= languages.map(tag => ({ tag, written: languageAndScript(tag) }))
    // Browsers send `zh-TW, zh`, so a tag that has neither a region nor a script (`zh`) takes the script of an earlier tag of
    // this language.
    const meanings = new Map<string, string | undefined>()
    for (const tag of accepted) {
      if (tag === '*') break
      const [language = ''] = tag.split('-')
      const written = (tag === language ? meanings.get(language) : undefined) ?? languageAndScript(tag)
      if (!meanings.has(language)) meanings.set(language, written)
      const matches = offered.filter(candidate => candidate.written === written).map(candidate => candidate.tag)
      const best =
        matches.find(match => match.toLowerCase() === tag.toLowerCase()) ??
        matches.find(match => !match.includes('-')) ??
        matches[0]
      if (best !== undefined) return best
    }
    return languages[0]
  }
}

/**
 * Returns the language and the script of a tag, for instance `zh-Hant` for `zh-TW`. Returns undefined for an invalid tag, because
 * a header may contain anything.
 */
function languageAndScript(tag: string): string | undefined {
  try {
    const { language, script } = new Intl.Locale(tag).maximize()
    return `${language}-${script}`
  } catch {
    return undefined
  }
}
