/**
 * The template of a page, which an operator may replace. A template gets only the values that are listed here, and none
 * of them is a secret. All values are escaped or are markup of this server.
 */
import { fileError } from './custom-files.js'
import { fillMarkup, type Html, hasUnclosedPlaceholder, placeholdersIn, splitAtPlaceholders } from './html.js'

// `docs/pages/error-pages.md` describes these values.
const NAMES = ['lang', 'dir', 'head', 'style', 'title', 'name', 'brand', 'content'] as const
type TemplateValues = Readonly<Record<(typeof NAMES)[number], string | Html | undefined>>

export type Template = ReturnType<typeof parseTemplate>

const REQUIRED = ['lang', 'head', 'content']

const STYLE_ELEMENT = /<style\b[^>]*>([\s\S]*?)<\/style\s*>/gi

// The Content-Security-Policy of the pages blocks these elements and attributes. Without an error message, the operator
// could not find out why they have no effect.
const BLOCKED: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/<script\b/i, 'a script.'],
  [/<[a-z][^>]*\son[a-z]+\s*=/i, 'an attribute with a script, such as onclick.'],
  [/<[a-z][^>]*\sstyle\s*=/i, 'a style attribute. Use a <style> element and a class.'],
  [/<(?:iframe|frame|object|embed)\b/i, 'a frame or an embedded object.'],
  [/<form\b/i, 'a form.'],
  [/<base\b/i, 'a <base> element.'],
  [/<meta\b[^>]*\shttp-equiv\b/i, 'a <meta> element with http-equiv.'],
  [/<link\b(?![^>]*\shref\s*=\s*["']?data:)/i, 'a <link> element. Write the style sheet into a <style> element.'],
  [/<[a-z][^>]*\s(?:src|srcset|poster)\s*=(?!\s*["']?data:)/i, 'an image or a file from another URL. Use a data: URL.'],
  [/@import\b|\burl\((?!\s*["']?(?:data:|#))/i, 'a style that loads a file. Use a data: URL.']
]

/**
 * @param path the path of the file, for messages
 * @throws {PageFilesError} with all problems, if the template cannot be used
 */
export function parseTemplate(text: string, path: string) {
  // Browsers convert each line break to a line feed before they compute the hash of a style. The server must compute
  // the hash of the same string.
  const markup = text.replace(/\r\n?/g, '\n')
  const parts = splitAtPlaceholders(markup)
  const styles = [...markup.matchAll(STYLE_ELEMENT)].map(([, style = '']) => style)
  const problems = problemsOf(markup, parts, styles)
  if (problems.length > 0) throw fileError(path, ...problems)
  return {
    /**
     * The content of each `style` element in the template. The Content-Security-Policy must contain the hashes of these
     * styles.
     */
    styles,
    render: (values: TemplateValues) => fillMarkup(parts, { ...values })
  }
}

function problemsOf(markup: string, parts: readonly string[], styles: readonly string[]): string[] {
  const names = placeholdersIn(parts)
  const known = NAMES.map(name => `{{${name}}}`).join(', ')
  const unknown = [...new Set(names)].filter(name => !NAMES.some(known => known === name))
  const missing = REQUIRED.filter(name => !names.includes(name))
  const visible = markup.replace(/<!--[\s\S]*?-->/g, '')
  return [
    ...(/^\s*<!doctype html>/i.test(markup) ? [] : ['does not begin with <!doctype html>.']),
    ...unknown.map(name => `has the unknown placeholder {{${name}}}. The known ones are ${known}.`),
    ...missing.map(name => `lacks the placeholder {{${name}}}, which every template needs.`),
    ...(hasUnclosedPlaceholder(parts) ? ['has {{ without }}.'] : []),
    ...(styles.some(style => style.includes('{{')) ? ['has a placeholder inside a <style> element.'] : []),
    ...BLOCKED.filter(([pattern]) => pattern.test(visible)).map(
      ([, what]) => `has something that the Content-Security-Policy of the pages blocks: ${what}`
    )
  ]
}

const BUILT_IN = `<!doctype html>
<html lang="{{lang}}" dir="{{dir}}">
<head>
{{head}}
{{style}}
</head>
<body>
<main>
{{brand}}
{{content}}
</main>
</body>
</html>
`

/** The built-in template. It is used for each language for which the operator has no template. */
export const builtInTemplate = parseTemplate(BUILT_IN, 'page.html')
