/**
 * Creates the function that chooses the language of a page. It gets the language tags of `Accept-Language`, the preferred
 * one first. A tag matches a language with the same script: users who accept `zh-TW` read Traditional Chinese, so they do
 * not get `zh`, which is Simplified Chinese.
 * @param languages the tags of the available languages; users who accept none of them get the first one
 */
export function languageChoice(languages: readonly [string, ...string[]]) {
  // The first use of Intl.Locale takes milliseconds, which a start does not need.
  let offered: { tag: string; written: string | undefined }[] | undefined

  return function languageFor(accepted: readonly string[]): string {
    offered ??= languages.map(tag => ({ tag, written: languageAndScript(tag) }))
    // Browsers send `zh-TW, zh`, so a tag without a region or a script means the same script as an earlier tag.
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

/** Returns for instance `zh-Hant` for `zh-TW`. A header can contain invalid tags, for which it returns undefined. */
function languageAndScript(tag: string): string | undefined {
  try {
    const { language, script } = new Intl.Locale(tag).maximize()
    return `${language}-${script}`
  } catch {
    return undefined
  }
}
