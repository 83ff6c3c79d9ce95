/**
 * Markup that can safely be inserted into a page, and placeholders such as `{{name}}` in the texts and templates of the
 * pages.
 */

// Markup is held in a property whose key is a symbol. So no value that was parsed from a request (JSON, query, form)
// can count as trusted markup.
const markup = Symbol('markup')

/** Markup that can safely be inserted into a page. Only `html` and `trusted` create such markup. */
export interface Html {
  readonly [markup]: string
}

type HtmlValue = string | number | Html | undefined | HtmlValue[]

/**
 * A tagged template for markup. The template itself is trusted. Strings are escaped for text and for quoted attributes.
 * An `Html` value is inserted unchanged. An array is inserted item by item, and `undefined` inserts nothing.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return { [markup]: parts.map((part, index) => part + toMarkup(values[index])).join('') }
}

/**
 * Marks a string from the code of this server as markup that must not be escaped, such as a style sheet. Never call it with a
 * string from a request.
 */
export function trusted(text: string): Html {
  return { [markup]: text }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"'`]/g, character => `&#${character.charCodeAt(0)};`)
}

/** Returns the markup for a value. Escapes strings. */
export function toMarkup(value: HtmlValue): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return escapeHtml(value)
  if (typeof value === 'number') return String(value)
  return Array.isArray(value) ? value.map(toMarkup).join('') : value[markup]
}

/**
 * A text that is split at its placeholders. Items with an even index are text, and items with an odd index are names.
 */
type TextParts = readonly string[]

export function splitAtPlaceholders(text: string): TextParts {
  return text.split(/\{\{([^{}]*)\}\}/).map((part, index) => (index % 2 === 1 ? part.trim() : part))
}

export function placeholdersIn(parts: TextParts): string[] {
  return parts.filter((_, index) => index % 2 === 1)
}

/** True if the text contains a `{{` that is not followed by a name and `}}`. */
export function hasUnclosedPlaceholder(parts: TextParts): boolean {
  return parts.some((part, index) => index % 2 === 0 && part.includes('{{'))
}

/** Replaces the placeholders in markup. Escapes all values except markup, and leaves the text between them unchanged. */
export function fillMarkup(parts: TextParts, values: Readonly<Record<string, HtmlValue>>): string {
  return parts.map((part, index) => (index % 2 === 1 ? toMarkup(values[part]) : part)).join('')
}

/** Escapes plain text and replaces the placeholders in it. */
export function fillText(text: string, values: Readonly<Record<string, HtmlValue>> = {}): Html {
  const parts = splitAtPlaceholders(text)
  return html`${parts.map((part, index) => (index % 2 === 1 ? values[part] : part))}`
}
