import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { quote } from './quote.js'
import { errorCode, whyUnreadable } from './read-file.js'

// Turns a settings file into an object (YAML by cosmiconfig's parser), or says why that fails. A reason names the line and
// never quotes it, because the line may hold a secret. Parsers do quote it.

type Loader = (path: string, text: string) => unknown

const loaders: Readonly<Record<string, Loader>> = {
  '': loadYaml,
  '.yaml': loadYaml,
  '.yml': loadYaml,
  '.json': loadJson,
  '.js': loadScript,
  '.mjs': loadScript,
  '.cjs': loadScript
}

/** The content of the file, unchecked, or undefined for an empty file. Everything it throws is for `whyUnusable`. */
export async function loadFile(path: string): Promise<unknown> {
  const text = await readFile(path, 'utf8')
  if (text.trim() === '') return undefined
  const load = loaders[extname(path)] ?? refuseKind
  return load(path, text)
}

/** The reason a file gave no settings, fit to be shown. */
export function whyUnusable(error: unknown, path: string): string {
  if (error instanceof Unusable) return error.message
  if (isYamlError(error)) {
    // From a quotation mark, a colon or a tag on, js-yaml's reasons repeat the text of the file.
    const reason = error.reason.replace(/\s*["'!<:].*$/s, '')
    const place = error.mark ? ` at line ${error.mark.line + 1}, column ${error.mark.column + 1}` : ''
    return `is not valid YAML: ${reason}${place}`
  }
  const code = errorCode(error)
  const lacking = code?.endsWith('MODULE_NOT_FOUND') && /^Cannot find \w+ '([^'\n]+)'/.exec(messageOf(error))?.[1]
  if (lacking) return `cannot be run: there is no module ${quote(lacking)}`
  if (code !== undefined && !code.startsWith('ERR_')) return `cannot be read: ${whyUnreadable(error)}`
  if (!(error instanceof Error)) return 'cannot be run'
  // An error of the language may quote the text of the file. The message of any other error was written to be read.
  const message = errorsOfTheLanguage.has(error.name) || error.message === '' ? '' : `: ${quote(error.message)}`
  return `cannot be run: ${error.name}${message}${lineThrown(error, path)}`
}

const errorsOfTheLanguage = new Set([
  'SyntaxError',
  'ReferenceError',
  'TypeError',
  'RangeError',
  'URIError',
  'EvalError'
])

class Unusable extends Error {}

// cosmiconfig's parser, and no more of it: `cosmiconfig()` begins with a search for settings of its own, and reads or runs
// a package.yaml or .config/config.js of the working directory that is none of ours.
async function loadYaml(path: string, text: string): Promise<unknown> {
  const { defaultLoaders } = await import('cosmiconfig')
  return defaultLoaders['.yaml'](path, text)
}

function loadJson(_path: string, text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (error) {
    if (isJson(withoutComments(text))) throw new Unusable('holds comments, which JSON has not; YAML has them (.yaml)')
    throw new Unusable(`is not valid JSON${jsonErrorLine(error, text)}`)
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Removes comments as JavaScript writes them, but nothing from inside a string. */
function withoutComments(text: string): string {
  return text.replace(
    /("(?:[^"\\]|\\.)*")|\/\/.*|\/\*[\s\S]*?\*\//g,
    (_match, string: string | undefined) => string ?? ''
  )
}

/** V8 names a position, or else quotes ten characters to either side of it, fewer where the text ends. */
function jsonErrorLine(error: unknown, text: string): string {
  const message = messageOf(error)
  const position = / at position (\d+)/.exec(message)?.[1]
  if (position !== undefined) return ` at line ${lineAt(text, Number(position))}`
  const [, token = '', before, quoted = '', after] =
    /^Unexpected token '(.+)', (\.\.\.)?"(.*)"(\.\.\.)? is not valid JSON$/su.exec(message) ?? []
  if (token === '') return ''
  const offset = before ? 10 : after ? quoted.length - 10 : quoted.indexOf(token)
  return ` near line ${lineAt(text, text.indexOf(quoted) + offset)}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
}

function lineAt(text: string, position: number): number {
  return text.slice(0, position).split('\n').length
}

async function loadScript(path: string): Promise<unknown> {
  const { default: settings } = await importScript(path)
  if (settings === undefined) throw new Unusable('has no default export')
  return settings
}

async function importScript(path: string): Promise<{ default?: unknown }> {
  try {
    return await import(pathToFileURL(path).href)
  } catch (error) {
    throw error instanceof Error ? error : new Unusable('cannot be run: it throws something that is no error')
  }
}

function refuseKind(): never {
  throw new Unusable('is of a kind that is not read; allowed: .yaml, .json, .js, .mjs and .cjs')
}

// A second document is a reason without a place.
function isYamlError(error: unknown): error is Error & { reason: string; mark?: { line: number; column: number } } {
  return error instanceof Error && error.name === 'YAMLException' && 'reason' in error
}

function lineThrown(error: Error, path: string): string {
  const places = (error.stack ?? '').split(path).slice(1)
  const line = places.map(place => /^:(\d+)/.exec(place)?.[1]).find(found => found !== undefined)
  return line === undefined ? '' : ` at line ${line}`
}
