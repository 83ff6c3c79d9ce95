import { parse } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { YAMLError } from 'yaml'
import { defaultExportOf, lineThrown } from '../../base/default-export.js'
import { errorCode, isError } from '../../base/error-code.js'
import { isJsonObject, parseJson } from '../../base/json.js'
import { quote } from '../types/problem.js'
import { appName } from './search-places.js'

// Reads the formats of settings files for cosmiconfig. A message may contain the number of a line but never its content, because
// the line may contain a secret. Messages of parsers often quote the line, so they are replaced.

/** The message continues the name of the file. */
export class UnusableSettings extends Error {}

const packageFile = 'package.json'
const bareName = appName.replaceAll('-', '')

/** The settings in a file that contains only comments. */
export const emptySettings = {}

/**
 * The loader for all formats. Returns the settings in a file, or for a package.json an object with them. Runs a script instead of
 * reading its text.
 * @param path an absolute path, whose extension determines the format; a file without an extension is YAML
 * @throws {UnusableSettings}
 */
export async function parseSettings(path: string, text: string): Promise<unknown> {
  const { base, ext } = parse(path)
  // cosmiconfig would read the files that `$import` names, and nothing would say that they contain settings.
  const content = /^\.[cm]?js$/.test(ext) ? await runScript(path) : await parseText(path, text)
  const settings: unknown = base === packageFile ? (content as Record<string, unknown>)[appName] : content
  if (Object.hasOwn(Object(settings), '$import'))
    throw new UnusableSettings('contains $import, which is not a setting. Write all settings into one file.')
  return content ?? emptySettings
}

async function parseText(path: string, withMark: string): Promise<unknown> {
  const { base, ext } = parse(path)
  if (!/^(\.json|\.ya?ml)?$/.test(ext))
    throw new UnusableSettings('has an unsupported file extension. Use .yaml, .json, .js, .mjs or .cjs.')
  if (withMark.includes('\0')) throw new UnusableSettings('cannot be read, because it is not encoded in UTF-8.')
  const text = withMark.replace(/^\uFEFF/, '')
  const json = ext === '.json' ? parseJson(text) : undefined
  const isPackage = base === packageFile
  if (isPackage && json !== undefined) {
    const names = isJsonObject(json) ? Object.keys(json) : []
    const misspelt = names.find(name => name !== appName && name.toLowerCase().replace(/[^a-z]/g, '') === bareName)
    if (misspelt) throw new UnusableSettings(`has a key that resembles ${appName}. Rename it to ${appName}.`)
    if (!names.includes(appName)) return {}
  }

  // Most servers have no such file, and start faster without the parser.
  const { isMap, isScalar, parseDocument } = await import('yaml')
  const document = parseDocument(text, { merge: true, logLevel: 'error' })
  const { contents } = document
  const ours =
    isPackage && isMap(contents)
      ? contents.items.filter(({ key }) => isScalar(key) && key.value === appName)
      : undefined
  const isRelevant = ({ pos: [start] }: YAMLError) =>
    ours?.some(({ key, value }) => isWithin(start, key) || isWithin(start, value)) ?? true
  // A tag that is not known is only a warning, but it replaces a value such as `!/public/**`.
  const errors = [...document.errors, ...document.warnings]
  const error = errors.find(error => (json === undefined || error.code === 'DUPLICATE_KEY') && isRelevant(error))
  if (error || (ext === '.json' && json === undefined)) throw new UnusableSettings(whyInvalid(ext, isPackage, error))
  if (isPackage) {
    const { [appName]: settings } = json as Record<string, unknown>
    if (settings === null)
      throw new UnusableSettings(`has an empty key ${appName}. Write settings into it, or remove it.`)
    return { [appName]: settings }
  }
  if (json !== undefined) return json
  try {
    return document.toJS()
  } catch {
    throw new UnusableSettings(
      'is not valid YAML, because it has an alias (*) without an anchor (&), or too many of them.'
    )
  }
}

function isWithin(position: number, node: unknown): boolean {
  const [start, end] = (node as { readonly range?: readonly number[] } | null)?.range ?? []
  return start !== undefined && end !== undefined && start <= position && position < end
}

function whyInvalid(extension: string, isPackage: boolean, error: YAMLError | undefined): string {
  const format = extension === '.json' ? 'JSON' : 'YAML'
  if (!error) {
    const advice = isPackage ? 'Correct it.' : 'Correct it, or rename it to .yaml, where they are allowed.'
    return `is not valid JSON, because it has a comment, a missing quotation mark or an additional comma. ${advice}`
  }
  const [{ line, col } = { line: 0, col: 0 }] = error.linePos ?? []
  const place = `at line ${line}, column ${col}`
  if (error.code === 'DUPLICATE_KEY') return `contains a name twice, the second time ${place}. Merge the two.`
  if (error.code === 'TAG_RESOLVE_FAILED')
    return `is not valid ${format} ${place}, where a value that begins with ! needs quotation marks.`
  return `is not valid ${format} ${place}, because the parser reports "${error.code.toLowerCase().replaceAll('_', ' ')}".`
}

async function runScript(path: string): Promise<unknown> {
  let module: object
  try {
    module = await import(pathToFileURL(path).href)
  } catch (error) {
    throw new UnusableSettings(whyThrown(error, path))
  }
  const { value, found } = defaultExportOf(module)
  if (value === undefined)
    throw new UnusableSettings(`has no default export. ${found} Export the settings as the default.`)
  return value
}

function whyThrown(error: unknown, path: string): string {
  if (!isError(error)) return 'cannot be run, because it throws a value that is not an error.'
  const missing =
    errorCode(error)?.endsWith('MODULE_NOT_FOUND') && /^Cannot find \w+ '([^'\n]+)'/.exec(error.message)?.[1]
  if (missing) return `cannot be run, because there is no module ${quote(missing)}.`
  const line = lineThrown(error, path)
  const place = line === undefined ? '' : ` at line ${line}`
  // The message may quote the content of the file, or a command with a secret.
  return `cannot be run, because it throws ${error.name}${place}. To see its message, run: node ${path}`
}
