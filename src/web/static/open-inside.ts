import fs, { constants, existsSync, type Stats } from 'node:fs'
import { relative, sep } from 'node:path'

/** An opened file. The caller must close the descriptor. */
export interface OpenedFile {
  readonly fd: number
  /** The real path below the root, with `/` as separator. A URL may spell this path differently. */
  readonly path: string
  /** The status of the opened file, and not of a file that has replaced it since. */
  readonly stats: Stats
}

// O_NONBLOCK does not exist on Windows. Without this flag, opening a pipe would wait until another process writes to
// the pipe.
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)

/**
 * Creates a function that opens files in `root`. The function resolves with undefined if there is no such file, if the
 * path leads to something other than a file, if the opened file is outside `root`, or if a name in its path is hidden.
 * If the file cannot be opened for another reason, the function rejects with Node's error.
 *
 * The checks are made after the file was opened. Otherwise, an attacker who can change a symlink or a folder in `root`
 * could replace it after the check and before the open.
 * @param root the real path of a folder
 * @param hasDescriptorPaths true if `/proc` contains the path of each descriptor; for tests
 */
export function openInside(root: string, hasDescriptorPaths = existsSync('/proc/self/fd')) {
  const inside = root.endsWith(sep) ? root : root + sep

  /** @param onFolder called if the path leads to a folder, which may also be outside `root` */
  return async function open(path: string, onFolder = () => {}): Promise<OpenedFile | undefined> {
    const fd = await openForReading(path)
    if (fd === undefined) return undefined
    try {
      const stats = fs.fstatSync(fd)
      if (stats.isDirectory()) onFolder()
      const realPath = stats.isFile() ? realPathOf(fd, path) : undefined
      if (realPath?.startsWith(inside)) {
        const names = relative(root, realPath).split(sep)
        if (!names.some(isHidden)) return { fd, stats, path: names.join('/') }
      }
    } catch (error) {
      closeFile(fd)
      throw error
    }
    closeFile(fd)
    return undefined
  }

  function realPathOf(fd: number, path: string): string | undefined {
    return (hasDescriptorPaths ? descriptorPathOf(fd, path) : undefined) ?? comparedPathOf(fd, path)
  }
}

const DELETED = ' (deleted)'

/**
 * Returns the path from which a descriptor was opened. Returns undefined for a file in a zip archive, because Yarn
 * Plug'n'Play gives it a descriptor that the system does not know.
 */
function descriptorPathOf(fd: number, path: string): string | undefined {
  try {
    const realPath = fs.readlinkSync(`/proc/self/fd/${fd}`)
    // Linux adds this suffix if the file has been replaced since it was opened.
    return realPath.endsWith(DELETED) && !path.endsWith(DELETED) ? realPath.slice(0, -DELETED.length) : realPath
  } catch (error) {
    if (isMissing(error as NodeJS.ErrnoException)) return undefined
    throw error
  }
}

/** Closes a descriptor in the background. No data can be lost, because the file was only read. */
export function closeFile(fd: number): void {
  fs.close(fd, () => {})
}

function openForReading(path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    fs.open(path, FLAGS, (error, fd) => {
      if (!error) resolve(fd)
      else if (isMissing(error)) resolve(undefined)
      else reject(error)
    })
  })
}

/** True for a file that does not exist, or whose symlinks form a loop (ELOOP). */
function isMissing({ code = '' }: NodeJS.ErrnoException): boolean {
  return ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP'].includes(code)
}

/**
 * Returns the current path of the opened file. It is for systems on which a process cannot read the path of a
 * descriptor. Returns undefined if `path` now leads to a different file. If an attacker replaces a symlink or folder
 * once, this function always detects the change. To deceive it, an attacker would have to replace a folder three times:
 * before the open, before `realpath` and before `lstat`.
 */
function comparedPathOf(fd: number, path: string): string | undefined {
  try {
    const realPath = fs.realpathSync.native(path)
    const [opened, named] = [fs.fstatSync(fd, { bigint: true }), fs.lstatSync(realPath, { bigint: true })]
    return opened.ino === named.ino && opened.dev === named.dev ? realPath : undefined
  } catch (error) {
    if (isMissing(error as NodeJS.ErrnoException)) return undefined
    throw error
  }
}

// The names in the URL were checked already, but not those in the target of a symlink. A name that begins with two dots does not
// count as hidden, because every file of a mounted Kubernetes ConfigMap is a symlink into the folder `..data`.
function isHidden(name: string, depth: number): boolean {
  return name.startsWith('.') && !name.startsWith('..') && !isWellKnown(name, depth)
}

/** True for the folder `/.well-known` (RFC 8615). Attackers look for secrets under all other names that begin with a dot. */
export function isWellKnown(name: string, depth: number): boolean {
  return name === '.well-known' && depth === 0
}
