import { realpath, stat } from 'node:fs/promises'
import { dirname, isAbsolute, relative, sep } from 'node:path'
import type { PrivateFile, SettingsFinding } from './sources/layer.js'
import type { ConfigProblem } from './types/problem.js'

// Finds files with secrets that other users of this machine can read, and private files that the server would publish.

// The permission bits for users who are neither the owner nor in the group. The bits of the group are not checked,
// because a service often reads its secret files through its group, as in the systemd unit that we ship.
const OTHERS_READ_OR_WRITE = 0o006
const OTHERS_ENTER = 0o001

/** Returns a warning if users other than the owner and the group may read or change the file. */
export async function exposedFile({ key, source, path }: PrivateFile): Promise<SettingsFinding[]> {
  if (!(await isOpenToOthers(path))) return []
  const message = `can be read or changed by every user of this machine. Run "chmod o-rw ${path}".`
  return [{ key, source, message, isWarning: true }]
}

async function isOpenToOthers(path: string): Promise<boolean> {
  // On Windows, the permission bits do not show who may access a file.
  if (process.platform === 'win32') return false
  try {
    const file = await realpath(path)
    const found = await stat(file)
    return found.isFile() && (found.mode & OTHERS_READ_OR_WRITE) !== 0 && (await isReachableByOthers(file))
  } catch {
    // The file or one of its folders cannot be examined. The code that reads the file reports this error.
    return false
  }
}

/** True if other users may enter every folder above the file. Otherwise they cannot open it. */
async function isReachableByOthers(path: string): Promise<boolean> {
  const folder = dirname(path)
  if (folder === path) return true
  return ((await stat(folder)).mode & OTHERS_ENTER) !== 0 && isReachableByOthers(folder)
}

/**
 * Returns a problem for each file in `files` that is inside wwwroot. Files whose names begin with a dot are not served, but they
 * are rejected too, because a copy of the folder or another web server might publish them.
 * @param wwwroot the absolute path of the folder of static files
 */
export async function publishedFiles(files: readonly PrivateFile[], wwwroot: string): Promise<ConfigProblem[]> {
  const root = await realpath(wwwroot)
  const problems: ConfigProblem[] = []
  for (const { key, source, path } of files) {
    const message = `must not be public, but the file ${path} is inside wwwroot (${wwwroot}), whose files everyone can download. Move this file, or set wwwroot to a different folder.`
    if (await isFileInside(root, path)) problems.push({ key, source, message })
  }
  return problems
}

/** @param root the real path of a folder */
async function isFileInside(root: string, path: string): Promise<boolean> {
  try {
    const file = await realpath(path)
    const fromRoot = relative(root, file)
    return (await stat(file)).isFile() && !isAbsolute(fromRoot) && fromRoot.split(sep, 1)[0] !== '..'
  } catch {
    // The file does not exist or cannot be examined. The code that reads the file reports this error.
    return false
  }
}
