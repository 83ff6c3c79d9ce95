/**
 * The built-in texts of the pages. Each language is a JSON file in the format that operators use for their own texts. English
 * defines the keys and the placeholders of all languages.
 */
import de from './texts/de.json' with { type: 'json' }
import en from './texts/en.json' with { type: 'json' }
import fr from './texts/fr.json' with { type: 'json' }
import ja from './texts/ja.json' with { type: 'json' }
import zh from './texts/zh.json' with { type: 'json' }

// The compiler writes the type of a constant into the packed types, so that they do not import a JSON file.
export const english = en

/** All texts of the pages in one language, by group and key. */
export type Texts = typeof english

/** By language tag (BCP 47). The first language is for users who accept none of the languages. */
export const builtInTexts: Readonly<Record<string, Texts>> = { en, de, fr, ja, zh }
