import { parse } from 'node:path'
import { pathToFileURL } from 'node:url'
import { defaultExportOf } from '../base/default-export.js'
import { errorCode, isError } from '../base/error-code.js'
import { findDuplicateName, findJsonError, isJsonObject, parseJson } from '../base/json.js'
import { quote } from './errors.js'
import { whyUnreadable } from './files.js'

// Reads the formats of settings files, and writes the messages for files that cannot be used. A message may contain the number
// of a line but never its content, because the line may contain a secret. Messages of parsers often quote the line, so they are
// replaced.

/**
 * Returns the settings in a file, or undefined if it contains none. Runs a script instead of reading its text.
 * @param path an absolute path, whose extension determines the format; a file without an extension is YAML
 * @throws an error that `whyUnusable` describes
 */
export async function parseSettings(path: string, text: string): Promise<unknown> {
  const { ext } = parse(path)
  if (isPackage(path)) return packageSettings(text, 'platform-auth-server')
  if (/^(\.ya?ml)?$/.test(ext)) return parseYaml(path, text)
  if (ext === '.json') return parseJsonSettings(text)
  if (/^\.[cm]?js$/.test(ext)) return loadScript(path)
  throw new Unusable(whyUnsupported(path))
}

/** Returns the message for a file that cannot be loaded, without any content of the file. */
export function whyUnusable(error: unknown, path: string): string {
  if (error instanceof Unusable) return error.message
  if (isYamlError(error)) {
    // A message of js-yaml may quote the file after a quotation mark, a colon or a tag, so the message is cut there.
    const reason = error.reason.replace(/\s*["'!<:].*$/s, '')
    const position = error.mark ? ` at line ${error.mark.line + 1}, column ${error.mark.column + 1}` : ''
    return `is not valid YAML, because the parser reports "${reason}"${position}.`
  }
  const code = errorCode(error)
  const missing =
    code?.endsWith('MODULE_NOT_FOUND') && /^Cannot find \w+ '([^'\n]+)'/.exec((error as Error).message)?.[1]
  if (missing) return `cannot be run, because there is no module ${quote(missing)}.`
  if (code !== undefined && !code.startsWith('ERR_')) return `cannot be read, because ${whyUnreadable(error)}.`
  if (!isError(error)) return 'cannot be run, because it throws a value that is not an error.'
  // The message of a built-in error may quote the content of the file, so it is left out. All other messages were
  // written by the author of the file, so they are shown.
  const message = builtInErrors.has(error.name) || error.message === '' ? '' : ` ${quote(error.message)}`
  const line = lineThrown(error, path)
  // For a syntax error in an ES module, Node reports the file and the line only if the error ends the process.
  const advice = error.name === 'SyntaxError' && line === '' ? ` To see the file and the line, run: node ${path}` : ''
  return `cannot be run, because it throws ${error.name}${message}${line}.${advice}`
}

const builtInErrors = new Set(['SyntaxError', 'ReferenceError', 'TypeError', 'RangeError', 'URIError', 'EvalError'])

class Unusable extends Error {}

function parseJsonSettings(text: string): unknown {
  const content = parseJson(text)
  if (content !== undefined) {
    rejectDuplicates(text)
    return content
  }
  const { expected, place } = findJsonError(text)
  const isJsonWithComments = parseJson(withoutComments(text)) !== undefined
  if (isJsonWithComments) {
    throw new Unusable(`contains comments, which JSON does not allow, at ${place}. Use YAML (.yaml) for comments.`)
  }
  throw new Unusable(`is not valid JSON, because ${expected} is expected at ${place}.`)
}

async function parseYaml(path: string, text: string): Promise<unknown> {
  // The main module of cosmiconfig cannot be imported by a user without a home folder and without an entry in /etc/passwd, such as
  // that of a container with `--user 12345`, because it asks the system for the home folder. Most servers have no file in YAML, and
  // start faster without its parser.
  const { loadYaml } = await import('cosmiconfig/dist/loaders.js')
  return loadYaml(path, text) ?? undefined
}

/** @param within the path of the member in which duplicate names are rejected; without it, they are rejected everywhere */
function rejectDuplicates(text: string, within?: string): void {
  const duplicate = findDuplicateName(text, within)
  if (duplicate === undefined) return
  const { path, place } = duplicate
  throw new Unusable(`contains ${quote(path)} twice, the second time at ${place}. Merge the two.`)
}

/** Returns the member `key` of a package.json. npm reports an invalid package.json, so such a file has no settings here. */
function packageSettings(text: string, key: string): unknown {
  const content = parseJson(text)
  if (!isJsonObject(content) || !Object.hasOwn(content, key)) return {}
  rejectDuplicates(text, key)
  return content[key]
}

export function isPackage(path: string): boolean {
  return parse(path).name === 'package'
}

/** Removes JavaScript comments, but changes no strings. */
function withoutComments(text: string): string {
  return text.replace(
    /("(?:[^"\\]|\\.)*")|\/\/.*|\/\*[\s\S]*?\*\//g,
    (_match, string: string | undefined) => string ?? ''
  )
}

async function loadScript(path: string): Promise<unknown> {
  const { value, found } = defaultExportOf(await import(pathToFileURL(path).href))
  if (value === undefined) throw new Unusable(`has no default export. ${found} Export the settings as the default.`)
  return value
}

function whyUnsupported(path: string): string {
  const { name, ext } = parse(path)
  const why = unsupportedFormat(ext, name)
  return why === undefined
    ? 'has an unsupported file extension. Use .yaml, .json, .js, .mjs or .cjs.'
    : `cannot be read, because ${why}`
}

// The error for a file with more than one YAML document has no `mark`.
function isYamlError(error: unknown): error is Error & { reason: string; mark?: { line: number; column: number } } {
  return isError(error) && error.name === 'YAMLException' && 'reason' in error
}

function lineThrown(error: Error, path: string): string {
  const places = (error.stack ?? '').split(path).slice(1)
  const line = places.map(place => /^:(\d+)/.exec(place)?.[1]).find(found => found !== undefined)
  return line === undefined ? '' : ` at line ${line}`
}

const unsupported: Readonly<Record<string, string>> = {
  '.toml': 'TOML',
  '.ini': 'INI',
  '.json5': 'JSON5',
  '.jsonc': 'JSON with comments'
}

/**
 * Returns the reason why a settings file in a known format cannot be used, and what to do instead. Returns undefined
 * for a supported or unknown format.
 * @param extension the extension of the file, with its dot
 * @param base the name of the file that should replace the settings file, without an extension
 */
export function unsupportedFormat(extension: string, base: string): string | undefined {
  if (/^\.[cm]?ts$/.test(extension)) {
    const script = `${base}${extension === '.cts' ? '.cjs' : '.mjs'}`
    return `TypeScript is not supported. Compile it or remove its types, and name the result ${script}.`
  }
  const format = unsupported[extension]
  return format && `${format} is not supported. Write the same settings in YAML, in ${base}.yaml.`
}
