import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { errorCode } from '../support/error-code.js'
import type { Given } from './layer.js'
import type { ValueType } from './types.js'

/**
 * Reads a secret from a file. It removes one newline at the end, because editors and `echo` add one that is not part of
 * the secret.
 */
export async function readSecretFile(
  path: string,
  cwd: string,
  origin: string,
  { isFileContent }: Pick<ValueType<unknown>, 'isFileContent'>
): Promise<Given> {
  const secretFile = resolve(cwd, path)
  try {
    const text = await readTextFile(secretFile)
    return { origin, secretFile, value: text.replace(/\r?\n$/, '') }
  } catch (error) {
    // A path that does not exist may be the secret itself, given by mistake, so the message does not show it. A key is easy
    // to tell from a path.
    const isPath = isFileContent && path.length < 500 && !/PRIVATE KEY|[{}\r\n]/.test(path)
    const file = fileExists(error) || isPath ? `the file ${path}` : 'the file'
    const allowed = 'allowed: the path of a file that holds the secret'
    return { origin, rejected: `${file} cannot be read: ${whyUnreadable(error)}; ${allowed}` }
  }
}

/** True if the error of a failed read shows that the file exists. */
function fileExists(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EISDIR', notUtf8].includes(errorCode(error) ?? '')
}

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

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'this user may not read it',
  EPERM: 'this user may not read it',
  EISDIR: 'it is a folder',
  [notUtf8]: 'it is not in UTF-8; save it in that encoding'
}

export function whyUnreadable(error: unknown): string {
  const code = errorCode(error)
  return (code && reasons[code]) ?? code ?? 'unknown reason'
}
