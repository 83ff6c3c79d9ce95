import { createPrivateKey, X509Certificate } from 'node:crypto'
import { access, constants, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { PageFilesError, readLogo, readPagesFolder } from '../pages/index.js'
import { errorCode } from '../support/error-code.js'
import { quote } from './errors.js'
import { readTextFile, whyUnreadable } from './files.js'
import { type Setting, type SettingKey, settingOf } from './settings.js'
import { withoutUser } from './urls.js'

/** `rejected` has one message for each problem, as in `Problem`. */
export type Checked = { readonly value: unknown } | { readonly rejected: readonly string[] }

/**
 * Checks one value against the type of its setting. Returns the parsed value, or the problems for which it is rejected.
 * @param file the file from which the value was read, if a secret has a separate file
 */
export function checkValue(key: SettingKey, value: unknown, file?: string): Checked {
  const setting = settingOf(key)
  const parsed = setting.type.parse(value)
  if ('value' in parsed) return parsed
  return { rejected: parsed.problems ?? [rejectionOf(setting, value, parsed.reason, file)] }
}

function rejectionOf({ secret, type }: Setting, value: unknown, reason: string | undefined, file?: string): string {
  const because = reason ? `, because ${reason}` : ''
  if (file !== undefined && type.isFileContent) {
    return `cannot be read from the file ${file}${because}. The file must contain ${type.allowed}.`
  }
  const found = secret ? (reason ? 'used' : typeName(value)) : describe(value)
  return `cannot be ${found}${because}. Set it to ${type.allowed}.`
}

function describe(value: unknown): string {
  if (typeof value === 'string') return `the string ${quote(withoutUser(value))}`
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value) && value.every(item => typeof item === 'string')) return `the list ${quote(value.join(' '))}`
  return typeName(value)
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a mapping'
  return `a ${typeof value}`
}

/** Makes the path of a file or folder absolute. Rejects a path that the server cannot use. */
type CheckPath = (given: string, cwd: string) => Promise<Checked>

/** The settings whose value is the path of a file or folder that the server reads. */
const paths: { readonly [Key in SettingKey]?: CheckPath } = {
  wwwroot: checkPath('wwwroot', whyNoFolder),
  extend: checkPath('extend', whyNoModule),
  'pages.logo': checkPages(readLogo),
  'pages.folder': checkPages(readPagesFolder),
  'redisTls.caFile': checkPath('redisTls.caFile', whyNoCertificates),
  'redisTls.certFile': checkPath('redisTls.certFile', whyNoCertificates),
  'redisTls.keyFile': checkPath('redisTls.keyFile', whyNoKey)
}

/** Checks one value as `checkValue` does, and then the file or folder that it names. */
export async function checkValueAndPath(key: SettingKey, value: unknown, cwd: string, file?: string): Promise<Checked> {
  const checked = checkValue(key, value, file)
  const check = paths[key]
  return check && 'value' in checked ? check(String(checked.value), cwd) : checked
}

/**
 * Returns the folder `wwwroot` of the working directory, or the value undefined if it does not exist. This folder is served
 * if no other folder is configured.
 */
export async function defaultFolder(cwd: string): Promise<Checked> {
  const isMissing = (await whyNoFolder(join(cwd, 'wwwroot'))) === noSuchFolder
  return isMissing ? { value: undefined } : checkValueAndPath('wwwroot', 'wwwroot', cwd)
}

function checkPath(key: SettingKey, whyUnusable: (path: string) => Promise<string | undefined>): CheckPath {
  return async function checkPathOf(given, cwd) {
    const path = resolve(cwd, given)
    const why = await whyUnusable(path).catch(whyUnreadable)
    if (why === undefined) return { value: path }
    // The operator may have given the key itself instead of the path of its file, so the message must not quote it.
    const found = given.includes('PRIVATE KEY') ? 'the key itself' : `the string ${quote(given)}, because ${why}`
    return { rejected: [`cannot be ${found}. Set it to the path of ${settingOf(key).type.allowed}.`] }
  }
}

const noSuchFolder = 'there is no such folder'

async function whyNoFolder(folder: string): Promise<string | undefined> {
  try {
    // stat(folder) succeeds even if this user may not enter the folder, so stat(folder/.) is used.
    return (await stat(`${folder}/.`)).isDirectory() ? undefined : noSuchFolder
  } catch (error) {
    return ['ENOENT', 'ENOTDIR'].includes(errorCode(error) ?? '') ? noSuchFolder : whyUnreadable(error)
  }
}

async function whyNoModule(path: string): Promise<string | undefined> {
  await access(path, constants.R_OK)
  return (await stat(path)).isFile() ? undefined : 'it is not a file'
}

function checkPages(read: (path: string) => unknown): CheckPath {
  return async function checkPagesAt(given, cwd) {
    const path = resolve(cwd, given)
    try {
      read(path)
      return { value: path }
    } catch (error) {
      if (!(error instanceof PageFilesError)) throw error
      return { rejected: error.problems.map(problem => `cannot be the string ${quote(given)}, because ${problem}.`) }
    }
  }
}

// The Redis client reads the PEM files again for each connection, so a damaged file should be found at the start.

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

async function whyNoCertificates(path: string): Promise<string | undefined> {
  const certificates = (await readTextFile(path)).match(CERTIFICATE)
  if (!certificates) return 'it contains no certificate in PEM format'
  return certificates.every(pem => isParsed(() => new X509Certificate(pem)))
    ? undefined
    : 'it contains a damaged certificate'
}

async function whyNoKey(path: string): Promise<string | undefined> {
  const text = await readTextFile(path)
  if (!text.includes('PRIVATE KEY-----')) return 'it contains no private key in PEM format'
  if (text.includes('ENCRYPTED')) return 'its key has a passphrase'
  return isParsed(() => createPrivateKey(text)) ? undefined : 'its key is damaged'
}

function isParsed(parse: () => unknown): boolean {
  try {
    parse()
    return true
  } catch {
    return false
  }
}
