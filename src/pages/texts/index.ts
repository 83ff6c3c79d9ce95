import { de } from './de.js'
import { en } from './en.js'
import { fr } from './fr.js'
import { ja } from './ja.js'
import type { Texts } from './texts.js'
import { zh } from './zh.js'

/**
 * Our own texts by language tag (BCP 47). The first language is used for people who accept none of the languages.
 */
export const ownTexts: Readonly<Record<string, Texts>> = { en, de, fr, ja, zh }
