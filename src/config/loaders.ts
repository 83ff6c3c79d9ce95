import { readFileSync } from 'node:fs'
import { parse } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Loader, Loaders } from 'cosmiconfig'
import { errorCode } from '../support/error-code.js'
import { findJsonError, parseJson } from '../support/json.js'
import { quote } from './errors.js'
import { whyUnreadable } from './files.js'

// The loaders for cosmiconfig, and the messages for files that cannot be loaded. A message may contain the number of a
// line but never its content, because the line may contain a secret. Messages of parsers often quote the line, so they
// are replaced.

/**
 * @param loadYaml the loader of cosmiconfig for YAML
 * @param onLoad called with the path of each file that is loaded, including the files that `$import` names
 */
export function createLoaders(loadYaml: Loader, onLoad: (path: string) => void): Loaders {
  const kinds: Readonly<Record<string, Loader>> = {
    noExt: loadYaml,
    '.yaml': loadYaml,
    '.yml': loadYaml,
    '.json': loadJson,
    '.js': loadScript,
    '.mjs': loadScript,
    '.cjs': loadScript,
    // The TypeScript loader of cosmiconfig needs the compiler, so it is not used.
    '.ts': rejectExtension,
    default: rejectExtension
  }
  return Object.fromEntries(Object.entries(kinds).map(([kind, load]) => [kind, withClearErrors(load, onLoad)]))
}

/**
 * Replaces the errors of a loader with errors for operators. The new errors have no error code, because cosmiconfig's search
 * skips a file if loading it fails with a code such as ENOENT. A script can throw such an error, for example when it reads
 * another file.
 */
function withClearErrors(load: Loader, onLoad: (path: string) => void): Loader {
  return async function loadWithClearErrors(path, text) {
    onLoad(path)
    try {
      // cosmiconfig treats null as a missing file, so null is replaced with undefined.
      return (await load(path, text)) ?? undefined
    } catch (error) {
      if (isMissingModule(error)) throw error
      throw new Unusable(whyUnusable(error, path))
    }
  }
}

/** True if the error says that Node cannot find a module. */
export function isMissingModule(error: unknown): error is Error {
  return errorCode(error)?.endsWith('MODULE_NOT_FOUND') ?? false
}

/** Returns the message for a file that cannot be loaded, without any content of the file. */
export function whyUnusable(error: unknown, path: string): string {
  if (error instanceof Unusable) return error.message
  // cosmiconfig reads its meta configuration with a built-in loader, whose messages quote the file.
  if (error instanceof Error && error.name === 'JSONError') return whyNotJson(readIfPossible(path))
  if (isYamlError(error)) {
    // A message of js-yaml may quote the file after a quotation mark, a colon or a tag, so the message is cut there.
    const reason = error.reason.replace(/\s*["'!<:].*$/s, '')
    const position = error.mark ? ` at line ${error.mark.line + 1}, column ${error.mark.column + 1}` : ''
    return `is not valid YAML, because the parser reports "${reason}"${position}.`
  }
  const code = errorCode(error)
  const missing = isMissingModule(error) && /^Cannot find \w+ '([^'\n]+)'/.exec(error.message)?.[1]
  if (missing) return `cannot be run, because there is no module ${quote(missing)}.`
  if (code !== undefined && !code.startsWith('ERR_')) return `cannot be read, because ${whyUnreadable(error)}.`
  if (!(error instanceof Error)) return 'cannot be run, because it throws a value that is not an error.'
  // The message of a built-in error may quote the content of the file, so it is left out. All other messages were
  // written by the author of the file, so they are shown.
  const message = builtInErrors.has(error.name) || error.message === '' ? '' : ` ${quote(error.message)}`
  return `cannot be run, because it throws ${error.name}${message}${lineThrown(error, path)}.`
}

const builtInErrors = new Set(['SyntaxError', 'ReferenceError', 'TypeError', 'RangeError', 'URIError', 'EvalError'])

class Unusable extends Error {}

function whyNotJson(text: string | undefined): string {
  if (text === undefined) return 'is not valid JSON.'
  const { expected, place } = findJsonError(withoutMark(text))
  return `is not valid JSON, because ${expected} is expected at ${place}.`
}

function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, '')
}

function readIfPossible(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

function loadJson(path: string, text: string): unknown {
  const json = withoutMark(text)
  const content = parseJson(json)
  // cosmiconfig reads the key `platform-auth-server` of the content, so the content must not be null. An invalid
  // package.json is ignored here, because npm reports it.
  if (isPackage(path)) return content ?? {}
  if (content !== undefined) return content
  if (parseJson(withoutComments(json)) === undefined) throw new Unusable(whyNotJson(json))
  const { place } = findJsonError(json)
  throw new Unusable(`contains comments, which JSON does not allow, at ${place}. Use YAML (.yaml) for comments.`)
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
  const { default: settings } = await import(pathToFileURL(path).href).catch((error: unknown) => {
    throw isMissingModule(error) ? new Unusable(whyUnusable(error, path)) : error
  })
  if (settings === undefined) throw new Unusable('has no default export. Export the settings as the default.')
  return settings
}

function rejectExtension(path: string): never {
  const { name, ext } = parse(path)
  const why = unsupportedFormat(ext, name)
  if (why !== undefined) throw new Unusable(`cannot be read, because ${why}`)
  throw new Unusable('has an unsupported file extension. Use .yaml, .json, .js, .mjs or .cjs.')
}

// The error for a file with more than one YAML document has no `mark`.
function isYamlError(error: unknown): error is Error & { reason: string; mark?: { line: number; column: number } } {
  return error instanceof Error && error.name === 'YAMLException' && 'reason' in error
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
