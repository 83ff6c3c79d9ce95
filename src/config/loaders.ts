import { parse } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Loader, Loaders } from 'cosmiconfig'
import { quote } from './quote.js'
import { errorCode, whyUnreadable } from './read-file.js'

// The loaders that cosmiconfig is given, and the reason why a file gave no settings. A reason may name the line but never
// quotes it, because the line may hold a secret. The messages of parsers do quote it.

/** @param loadYaml cosmiconfig's own loader for YAML */
export function createLoaders(loadYaml: Loader): Loaders {
  const kinds: Readonly<Record<string, Loader>> = {
    noExt: loadYaml,
    '.yaml': loadYaml,
    '.yml': loadYaml,
    '.json': loadJson,
    '.js': loadScript,
    '.mjs': loadScript,
    '.cjs': loadScript,
    // Not cosmiconfig's own loader for TypeScript, which needs the compiler.
    '.ts': refuseKind,
    default: refuseKind
  }
  return Object.fromEntries(Object.entries(kinds).map(([kind, load]) => [kind, explained(load)]))
}

/**
 * A loader whose errors are for people. They have no error code: cosmiconfig passes over a file when its error has one of
 * some codes, and a script that misses a file of its own throws such an error.
 */
function explained(load: Loader): Loader {
  return async function loadExplained(path, text) {
    try {
      // cosmiconfig takes null for a file that is not there.
      return (await load(path, text)) ?? undefined
    } catch (error) {
      throw new Unusable(whyUnusable(error, path))
    }
  }
}

/** The reason a file gave no settings, fit to be shown. */
export function whyUnusable(error: unknown, path: string): string {
  if (error instanceof Unusable) return error.message
  // cosmiconfig's own loader, which reads its meta configuration, quotes the file.
  if (error instanceof Error && error.name === 'JSONError') return notJson
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

const notJson = 'is not valid JSON'

function loadJson(path: string, text: string): unknown {
  const isPackage = parse(path).name === 'package'
  try {
    const content: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
    // cosmiconfig looks up our key in it, which fails in null.
    return isPackage ? (content ?? {}) : content
  } catch {
    // A package.json is there for npm, and npm complains about it.
    if (isPackage) return {}
    if (isJson(withoutComments(text))) throw new Unusable('holds comments, which JSON has not; YAML has them (.yaml)')
    throw new Unusable(notJson)
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

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
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
