import { readFileSync, statSync } from 'node:fs'
import { fileError, PageFilesError } from './errors.js'

/**
 * Reads a whole file.
 * @param maxBytes the largest size that is allowed
 * @throws {PageFilesError} if the file cannot be read or is too large
 */
export function readBytes(path: string, maxBytes: number): Buffer {
  try {
    const stats = statSync(path)
    if (!stats.isFile()) throw fileError(path, 'is not a file; allowed: the path of a file')
    if (stats.size > maxBytes) throw fileError(path, `has ${stats.size} bytes; allowed: at most ${maxBytes} bytes`)
    return readFileSync(path)
  } catch (error) {
    if (error instanceof PageFilesError) throw error
    throw fileError(path, `${whyUnreadable(error)}; allowed: the path of a file`)
  }
}

/** Reads a text file in UTF-8 and removes the byte order mark that Windows editors write. */
export function readText(path: string, maxBytes: number): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readBytes(path, maxBytes))
  } catch (error) {
    if (error instanceof TypeError) throw fileError(path, 'is not in UTF-8; save it in that encoding')
    throw error
  }
}

/** Explains an error of the operating system. The text continues a sentence that begins with the path. */
export function whyUnreadable(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'does not exist'
  return `cannot be read: ${code === 'EACCES' ? 'this user may not read it' : (code ?? message)}`
}
