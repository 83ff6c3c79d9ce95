import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Given } from './layer.js'

/**
 * Reads the file a secret is kept in. Editors and `echo` end a file with a newline that is no part of the secret: one
 * is dropped.
 */
export async function readSecretFile(path: string, cwd: string, origin: string): Promise<Given> {
  try {
    const text = await readFile(resolve(cwd, path), 'utf8')
    return { origin, value: text.replace(/\r?\n$/, '') }
  } catch (error) {
    // What is no path of anything may be the secret itself, given where its file belongs.
    const file = isThere(error) ? `the file ${path}` : 'the file'
    const allowed = 'allowed: the path of a file that holds the secret'
    return { origin, refused: `${file} cannot be read: ${whyUnreadable(error)}; ${allowed}` }
  }
}

/** Whether what could not be read is there. */
function isThere(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EISDIR'].includes(errorCode(error) ?? '')
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
  EISDIR: 'it is a folder'
}

export function whyUnreadable(error: unknown): string {
  const code = errorCode(error)
  return (code && reasons[code]) ?? code ?? 'unknown reason'
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
