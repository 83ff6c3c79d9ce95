/** Loads the custom routes of the operator from the module in the setting `extension`. */

import { pathToFileURL } from 'node:url'
import type Router from '@koa/router'
import type Koa from 'koa'
import type { Middleware } from 'koa'
import type { Logger } from 'pino'
import { defaultExportOf, lineThrown } from '../../base/default-export.js'
import { errorCode, isError } from '../../base/error-code.js'
import type { TokensState } from './require-tokens.js'

export { default as Router } from '@koa/router'

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

/**
 * Imports an extension.
 * @param path the absolute path of a module whose default export is an `Extension`
 * @throws {ExtensionError} if the module cannot be loaded, or if its default export is not a function. The returned
 *   function rejects with ExtensionError if the extension itself fails.
 */
export async function loadExtension(path: string): Promise<Extension> {
  const module: object = await import(pathToFileURL(path).href).catch((error: unknown) => {
    if (isTypeScriptUnsupported(error)) {
      const way = 'Use Node 22.18 or later, or compile the module and use the compiled file'
      throw new ExtensionError(path, `needs TypeScript, which Node ${process.versions.node} cannot run. ${way}.`)
    }
    throw new ExtensionError(path, `cannot be run: ${summary(error, path)}`, { cause: error })
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

/** The module in the setting `extension` cannot be used. The message tells the operator the reason. */
export class ExtensionError extends Error {
  override readonly name = 'ExtensionError'

  constructor(path: string, why: string, options?: ErrorOptions) {
    super(`${path} (setting extension) ${why}`, options)
  }
}

/** Returns the name and message of an error, and the line in which it occurred, or how to find it. */
function summary(error: unknown, path: string): string {
  if (!isError(error)) return String(error)
  const { name, message } = error
  const line = lineThrown(error, path)
  if (line !== undefined) return `${name}: ${message} (line ${line})`
  const advice = name === 'SyntaxError' ? `. To see the file and the line, run: node ${path}` : ''
  return `${name}: ${message}${advice}`
}
