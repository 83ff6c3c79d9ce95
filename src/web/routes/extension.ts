/** Loads the custom routes of the operator from the module in the setting `extend`. */

import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { fileURLToPath, pathToFileURL } from 'node:url'
import Router from '@koa/router'
import type Koa from 'koa'
import type { Middleware } from 'koa'
import type { Logger } from 'pino'
import { defaultExportOf } from '../../base/default-export.js'
import { errorCode, isError } from '../../base/error-code.js'
import type { TokensState } from './require-tokens.js'

/**
 * The objects that an extension receives as an argument. It does not have to import them, so it works even in a folder
 * without installed packages.
 */
export interface ExtensionTools {
  /** The `requireTokens` middleware that this package exports. */
  readonly requireTokens: Middleware<TokensState>
  /** The class that `@koa/router` exports. */
  readonly Router: typeof Router
  /** The log of the server. */
  readonly log: Logger
}

/** Adds routes or middleware to the application with `app.use`. They run after the routes of the server. */
export type Extension = (app: Koa, tools: ExtensionTools) => void | Promise<void>

export function extensionTools(requireTokens: Middleware<TokensState>, log: Logger): ExtensionTools {
  return { requireTokens, Router, log }
}

/**
 * Imports an extension.
 * @param path the absolute path of a module whose default export is an `Extension`
 * @throws {ExtensionError} if the module cannot be loaded, or if its default export is not a function. The returned
 *   function rejects with ExtensionError if the extension itself fails.
 */
export async function loadExtension(path: string): Promise<Extension> {
  const module: object = await import(pathToFileURL(path).href).catch(async (error: unknown) => {
    if (isTypeScriptUnsupported(error)) {
      const way = 'Use Node 22.18 or later, or compile the module and use the compiled file'
      throw new ExtensionError(path, `needs TypeScript, which Node ${process.versions.node} cannot run. ${way}.`)
    }
    const position =
      isError(error) && error.name === 'SyntaxError'
        ? (positionOf(error) ?? (await syntaxErrorPosition(path)))
        : undefined
    throw new ExtensionError(path, `cannot be run: ${summary(error, path, position)}`, { cause: error })
  })
  const { value, found } = defaultExportOf(module)
  if (typeof value !== 'function') {
    const advice = 'Export one: export default function (app, tools) { … }'
    throw new ExtensionError(path, `has no function as its default export. ${found} ${advice}`)
  }
  const extend = value as Extension
  return async function extendByModule(app, tools) {
    try {
      await extend(app, tools)
    } catch (error) {
      throw new ExtensionError(path, `failed: ${summary(error, path)}`, { cause: error })
    }
  }
}

/** True if Node cannot load a TypeScript file, which may be the module itself or a file that it imports. */
function isTypeScriptUnsupported(error: unknown): boolean {
  return errorCode(error) === 'ERR_UNKNOWN_FILE_EXTENSION' && /"\.[cm]?ts"/.test(String(error))
}

/** The module in the setting `extend` cannot be used. The message tells the operator the reason. */
export class ExtensionError extends Error {
  override readonly name = 'ExtensionError'

  constructor(path: string, why: string, options?: ErrorOptions) {
    super(`${path} (setting extend) ${why}`, options)
  }
}

/**
 * Returns the name and message of an error, and the line in which it occurred.
 * @param position the position of a syntax error; the lines of other errors come from the stack
 */
function summary(error: unknown, path: string, position?: SourcePosition): string {
  if (!isError(error)) return String(error)
  const [, thrownAt] = (error.stack ?? '').split(path)[1]?.match(/^:(\d+)/) ?? []
  const line = position?.line ?? thrownAt
  const where =
    line === undefined ? '' : ` (line ${line}${position && position.file !== path ? ` of ${position.file}` : ''})`
  return `${error.name}: ${error.message}${where}`
}

/** Returns the position of a syntax error if its stack begins with the position, as it does for CommonJS modules. */
function positionOf({ stack = '' }: Error): SourcePosition | undefined {
  const [, file, line] = /^(\/.*|[A-Z]:\\.*|file:.*):(\d+)\n/.exec(stack) ?? []
  if (file === undefined) return undefined
  return { file: file.startsWith('file:') ? fileURLToPath(file) : file, line: Number(line) }
}

export interface SourcePosition {
  readonly file: string
  readonly line: number
}

/**
 * Returns the file and line of a syntax error that `import(path)` has thrown, or undefined if they cannot be found.
 * Node reports them only when the error ends the process. This function therefore lets another process check the
 * module, and then each module that it imports by a relative path. No module is run.
 */
export async function syntaxErrorPosition(path: string): Promise<SourcePosition | undefined> {
  const addresses = new Set([pathToFileURL(path).href])
  // The loop also visits modules that are added during the loop. Each module is checked only once.
  for (const address of addresses) {
    const source = await readFile(fileURLToPath(address), 'utf8').catch(() => '')
    const line = await wrongLine(source)
    if (line !== undefined) return { file: fileURLToPath(address), line }
    for (const [, specifier = ''] of source.matchAll(relativeImports)) addresses.add(new URL(specifier, address).href)
  }
  return undefined
}

const relativeImports = /\b(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+\.m?js)['"]/g

/** Returns the line of the first syntax error in the source of a module. */
async function wrongLine(source: string): Promise<number | undefined> {
  const node = spawn(process.execPath, ['--check', '--input-type=module'], { stdio: ['pipe', 'ignore', 'pipe'] })
  // If Node cannot be started, there is no output, so the error message contains no line number.
  node.on('error', () => {})
  node.stdin.on('error', () => {})
  node.stdin.end(source)
  const [, line] = /^\[stdin\]:(\d+)$/m.exec(await text(node.stderr)) ?? []
  return line === undefined ? undefined : Number(line)
}
