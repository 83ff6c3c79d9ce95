/**
 * Node's cache of compiled modules, which shortens every start but the first. Node 22.8 and later have it. Where it is
 * missing or its folder cannot be written, the server starts without it.
 */
import { mkdirSync } from 'node:fs'
import module from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../config/environment.js'

/** The functions of `node:module` that Node 20, whose types are used here, does not have. */
export interface CompileCache {
  enableCompileCache?(folder?: string): unknown
  flushCompileCache?(): void
}

/**
 * Enables the cache. NODE_COMPILE_CACHE chooses its folder and NODE_DISABLE_COMPILE_CACHE switches it off, both as
 * documented by Node. The default folder is `.cache/platform-auth-server` in the home folder.
 */
export function enableCompileCache(
  env: Environment = process.env,
  node: CompileCache = module as CompileCache,
  home: () => string = homedir
): void {
  if (!node.enableCompileCache || env.NODE_COMPILE_CACHE || env.NODE_DISABLE_COMPILE_CACHE) return
  try {
    node.enableCompileCache(privateFolder(home()))
  } catch {
    // There is no home folder, or it cannot be written.
  }
}

/** Writes the modules that were compiled since the start, because a server may run for months and then be killed. */
export function saveCompiledModules(node: CompileCache = module as CompileCache): void {
  node.flushCompileCache?.()
}

// Node's own default is in the shared folder for temporary files. There another user of the machine could create it
// first and fill it with code of their own, because Node does not check who owns it.
function privateFolder(home: string): string {
  const caches = join(home, '.cache')
  const folder = join(caches, 'platform-auth-server')
  // Not recursive, because a missing home folder must not be created.
  for (const path of [caches, folder]) makeFolder(path)
  return folder
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
