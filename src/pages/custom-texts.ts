import { isJsonObject } from '../base/json.js'
import { fileError } from './custom-files.js'
import { hasUnclosedPlaceholder, placeholdersIn, splitAtPlaceholders } from './html.js'
import { builtInTexts, english, type Texts } from './texts.js'

/**
 * Reads the texts in a JSON file. Texts that the file lacks are taken from the built-in texts in this language. If this language
 * has no built-in texts, the file must contain all texts, because a page in two languages would be hard to read.
 * @param path the path of the file, for messages
 * @throws {PageFilesError} with all problems, if the file cannot be used
 */
export function parseTexts(content: string, path: string, language: string): Texts {
  const given = parseObject(content, path)
  const entries = new Map(entriesOf(given))
  const problems = [...entries].flatMap(
    ([key, value]) => (keys.includes(key) ? problemOfText(key, value) : unknownKey(key)) ?? []
  )
  const builtIn = builtInTexts[language]
  const missing = builtIn ? [] : keys.filter(key => !entries.has(key))
  if (missing.length > 0) {
    const reason = `the server has no built-in texts for ${language}`
    problems.push(`lacks texts, and ${reason}. Add ${missing.join(', ')}.`)
  }
  if (problems.length > 0) throw fileError(path, ...problems)
  const merged = Object.entries(builtIn ?? english).map(([group, texts]) => [
    group,
    { ...texts, ...(given[group] as object | undefined) }
  ])
  return Object.fromEntries(merged)
}

const englishTexts = new Map(entriesOf(english))
const keys = [...englishTexts.keys()]

function parseObject(content: string, path: string): Record<string, unknown> {
  let parsed: unknown
  try {
    parsed = JSON.parse(content)
  } catch (error) {
    // The message may quote the file, which contains no secrets.
    throw fileError(path, `is not valid JSON: ${(error as SyntaxError).message}.`)
  }
  if (isJsonObject(parsed)) return parsed
  throw fileError(path, 'must contain an object, for example {"notFound": {"title": "…"}}.')
}

/** Returns the texts with keys that contain the group, such as `notFound.title`. */
function entriesOf(given: Record<string, unknown>): (readonly [key: string, value: unknown])[] {
  return Object.entries(given).flatMap(([group, members]) =>
    isJsonObject(members)
      ? Object.entries(members).map(([name, value]) => [`${group}.${name}`, value] as const)
      : [[group, members] as const]
  )
}

function problemOfText(key: string, value: unknown): string | undefined {
  if (typeof value !== 'string' || value.trim() === '')
    return `has no text for ${key}. Write the text in quotation marks.`
  const parts = splitAtPlaceholders(value)
  const allowed = placeholdersIn(splitAtPlaceholders(String(englishTexts.get(key))))
  const unknown = placeholdersIn(parts).find(name => !allowed.includes(name))
  const list = allowed.length === 0 ? 'none' : allowed.map(name => `{{${name}}}`).join(', ')
  if (unknown !== undefined)
    return `has the unknown placeholder {{${unknown}}} in ${key}. The placeholders of this text are: ${list}.`
  return hasUnclosedPlaceholder(parts) ? `has {{ without }} in ${key}.` : undefined
}

function unknownKey(key: string): string {
  const group = keys.filter(known => known.split('.', 1)[0] === key.split('.', 1)[0])
  return `has the unknown text ${JSON.stringify(key)}. The known texts are ${(group.length > 0 ? group : keys).join(', ')}.`
}
