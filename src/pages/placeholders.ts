/** Placeholders such as `{{name}}`, which the texts and the templates of the pages contain. */
import { type Html, type HtmlValue, html } from './html.js'

/** A text that is split at its placeholders. Items with an even index are text, and items with an odd index are names. */
type Parts = readonly string[]

export function splitAtPlaceholders(text: string): Parts {
  return text.split(/\{\{([^{}]*)\}\}/).map((part, index) => (index % 2 === 1 ? part.trim() : part))
}

export function namesIn(parts: Parts): string[] {
  return parts.filter((_, index) => index % 2 === 1)
}

/** True if the text has `{{` without a name and `}}` behind it. */
export function hasUnclosedPlaceholder(parts: Parts): boolean {
  return parts.some((part, index) => index % 2 === 0 && part.includes('{{'))
}

/**
 * Joins the parts and replaces each name with its value. Values are escaped, except markup.
 * @param asMarkup turns the text between the placeholders into markup; by default, this text is escaped
 */
export function fill(
  parts: Parts,
  values: Readonly<Record<string, HtmlValue>>,
  asMarkup: (text: string) => HtmlValue = text => text
): Html {
  return html`${parts.map((part, index) => (index % 2 === 1 ? values[part] : asMarkup(part)))}`
}

/** Replaces the placeholders of a plain text. */
export function fillText(text: string, values: Readonly<Record<string, HtmlValue>> = {}): Html {
  return fill(splitAtPlaceholders(text), values)
}
