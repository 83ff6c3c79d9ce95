/**
 * Enables Node's cache of compiled modules, which makes every start except the first faster. The cache exists in Node 22.8
 * and later. If it does not exist or its folder cannot be written, the server starts without a cache.
 */
import { mkdirSync } from 'node:fs'
import module from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../config/environment.js'

/** Functions of `node:module`. They are declared here because we compile with the types of Node 20, which do not contain them. */
export interface CompileCache {
  enableCompileCache?(folder?: string): unknown
  flushCompileCache?(): void
}

/**
 * Enables the cache in the folder `.cache/platform-auth-server` of the home folder. Does nothing if NODE_COMPILE_CACHE is
 * set, because Node itself has then enabled the cache in the folder that this variable contains. Also does nothing if
 * NODE_DISABLE_COMPILE_CACHE is set, because this variable switches the cache off. Node documents both variables.
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

/** Writes the cache now. Node writes it only when the process ends normally, but a server may run for months and be killed. */
export function saveCompiledModules(node: CompileCache = module as CompileCache): void {
  node.flushCompileCache?.()
}

// By default, Node keeps the cache in the shared folder for temporary files. Node does not check who owns the cache, so
// another user of the machine could create it first and put their own code into it.
function privateFolder(home: string): string {
  const caches = join(home, '.cache')
  const folder = join(caches, 'platform-auth-server')
  // The folders are created one by one. A recursive call would also create a missing home folder.
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
