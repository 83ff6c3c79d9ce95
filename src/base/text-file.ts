/** Reads text files, and words the errors of the system for messages. */
import { existsSync, lstatSync, type Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { errorCode } from './error-code.js'

const notUtf8 = 'NOT_UTF8'

/**
 * Reads a text file in UTF-8 and removes the byte order mark that Windows editors write. Rejects if the file is in UTF-16,
 * which some Windows editors also write.
 */
export async function readTextFile(path: string): Promise<string> {
  const text = (await readFile(path, 'utf8')).replace(/^\uFEFF/, '')
  if (text.includes('\0')) throw Object.assign(new Error('not UTF-8'), { code: notUtf8 })
  return text
}

/** Returns information about a file or folder, or undefined if this user cannot examine it. */
export function statIfPossible(path: string): Promise<Stats | undefined> {
  return stat(path).catch(() => undefined)
}

/** True for a symlink to a file or folder that does not exist. */
export function isDangling(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink() && !existsSync(path)
  } catch {
    return false
  }
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
  EISDIR: 'it is a folder',
  ELOOP: 'its symlinks lead in a circle',
  ENAMETOOLONG: 'the path is too long',
  [notUtf8]: 'it is not encoded in UTF-8'
}

/** Returns why the file or folder at a path could not be read. */
export function whyUnreadableAt(path: string, error: unknown): string {
  const isLink = errorCode(error) === 'ENOENT' && isDangling(path)
  return isLink ? 'it is a symlink to a file that does not exist' : whyUnreadable(error)
}

export function whyUnreadable(error: unknown): string {
  const code = errorCode(error)
  return (code && reasons[code]) ?? (code ? `the system reports ${code}` : 'the reason is unknown')
}
