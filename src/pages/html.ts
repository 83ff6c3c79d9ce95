// The key of the markup is a symbol: nothing that was parsed from a request (JSON, query, form) can pass for trusted markup.
const markup = Symbol('markup')

/** Markup that is safe to write into a page. Only `html` and `trusted` make it. */
export interface Html {
  readonly [markup]: string
}

export type HtmlValue = string | number | Html | undefined | readonly HtmlValue[]

/**
 * A tagged template for markup: what stands in the template is trusted, every value is escaped, for text and for quoted
 * attributes alike. Values that are `Html` themselves go in as they are, arrays one after the other, `undefined` as nothing.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return { [markup]: parts.map((part, index) => part + render(values[index])).join('') }
}

/** For text of our own that must stay as it is, such as a style sheet; never for anything that came from outside. */
export function trusted(text: string): Html {
  return { [markup]: text }
}

export function toMarkup(page: Html): string {
  return page[markup]
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"'`]/g, character => `&#${character.charCodeAt(0)};`)
}

function render(value: HtmlValue): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return escapeHtml(value)
  if (typeof value === 'number') return String(value)
  if (isList(value)) return value.map(render).join('')
  return value[markup]
}

// Array.isArray does not narrow a readonly array away.
function isList(value: Html | readonly HtmlValue[]): value is readonly HtmlValue[] {
  return Array.isArray(value)
}
