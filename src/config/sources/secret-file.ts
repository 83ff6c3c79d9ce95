import { resolve } from 'node:path'
import { errorCode } from '../../base/error-code.js'
import { readTextFile, whyUnreadable } from '../../base/text-file.js'
import type { ValueType } from '../types/value-type.js'
import type { Given } from './layer.js'

interface SecretFileOptions {
  readonly cwd: string
  readonly source: string
  readonly type: ValueType<unknown>
  readonly mayBeEmpty: boolean
}

/** Reads a secret from a file. The path of a file that does not exist is not shown, because it may be the secret itself. */
export async function readSecretFile(path: string, options: SecretFileOptions): Promise<Given> {
  const { cwd, source, type, mayBeEmpty } = options
  const secretFile = resolve(cwd, path)
  try {
    const value = await readTextFile(secretFile)
    if (mayBeEmpty || value.trim() !== '') return { source, secretFile, value }
    const message = `cannot be read from the file ${path}, because the file is empty. The file must contain ${type.allowed}.`
    return { source, rejected: [message] }
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(errorCode(error) ?? '')
    const message = `cannot be read from ${isMissing ? 'a file' : `the file ${path}`}, because ${whyUnreadable(error)}. Set it to the path of a file that contains the secret.`
    return { source, rejected: [message] }
  }
}
