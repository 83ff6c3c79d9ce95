/**
 * Enables Node's cache of compiled modules, which makes every start except the first faster. The cache exists in Node 22.8
 * and later. If it does not exist, or if its folder cannot be written or can be changed by other users, the server starts
 * without a cache.
 */
import { lstatSync, mkdirSync, realpathSync } from 'node:fs'
import module from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
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
    const folder = privateFolder(home())
    if (folder !== undefined) node.enableCompileCache(folder)
  } catch {
    // There is no home folder, or it cannot be written.
  }
}

/** Writes the cache now. Node writes it only when the process ends normally, but a server may run for months and be killed. */
export function saveCompiledModules(node: CompileCache = module as CompileCache): void {
  node.flushCompileCache?.()
}

// By default, Node keeps the cache in the shared folder for temporary files. Node runs the code in the cache and does not
// check who owns it, so another user of the machine could create the cache first and put their own code into it.
function privateFolder(home: string): string | undefined {
  // If other users may change the home folder, `.cache` may be their link to any place, where nothing should be created.
  const realHome = realpathSync(home)
  if (!areProtected(realHome)) return undefined
  const caches = join(realHome, '.cache')
  const folder = join(caches, 'platform-auth-server')
  // The folders are created one by one. A recursive call would also create a missing home folder.
  for (const path of [caches, folder]) makeFolder(path)
  const realFolder = realpathSync(folder)
  const parent = dirname(realFolder)
  return isOwn(realFolder) && isOwn(parent) && areProtected(dirname(parent)) ? realFolder : undefined
}

const ROOT = 0
// The permission bits of the group and of all other users, and the bit that lets only the owners of a folder and of an
// entry rename or remove this entry.
const OTHERS_WRITE = 0o022
const STICKY = 0o1000

/** True if the folder belongs to the user of this process and nobody else may write to it. */
function isOwn(path: string): boolean {
  // On Windows, there are no user ids, and home folders are private by default.
  if (!process.geteuid) return true
  const { uid, mode } = lstatSync(path)
  return uid === process.geteuid() && (mode & OTHERS_WRITE) === 0
}

/**
 * True if no other user except root can replace the folder or one of the folders above it. A folder with the sticky bit,
 * such as `/tmp`, protects the entries that belong to somebody else.
 * @param path the real path of a folder
 */
function areProtected(path: string): boolean {
  if (!process.geteuid) return true
  const { uid, mode } = lstatSync(path)
  const isProtected = (mode & OTHERS_WRITE) === 0 || (mode & STICKY) !== 0
  if (!isProtected || (uid !== ROOT && uid !== process.geteuid())) return false
  const parent = dirname(path)
  return parent === path || areProtected(parent)
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
