import { join, resolve } from 'node:path'
import { PageFilesError } from '../pages/index.js'
import { quote } from './errors.js'
import { whyUnreadable } from './files.js'
import { noSuchFolder, notAFolder, whyNoFolder } from './paths.js'
import { type Setting, type SettingKey, settingOf } from './settings.js'
import { maskUrl } from './urls.js'

/** `rejected` has one message for each problem, worded like `ConfigProblem.message`. */
export type Checked = { readonly value: unknown } | { readonly rejected: readonly string[] }

/**
 * Checks one value against the type of its setting. Returns the parsed value, or the reasons why it is rejected.
 * @param file the file from which the value was read, if a secret has a separate file
 */
export function checkValue(key: SettingKey, value: unknown, file?: string): Checked {
  const setting = settingOf(key)
  const parsed = setting.type.parse(trimmed(value, setting))
  if ('value' in parsed) return parsed
  return { rejected: parsed.problems ?? [rejectionMessage(setting, value, parsed.reason, file)] }
}

/**
 * Removes the white space around a string, and around the strings in a list of secrets. All sources are treated alike, so that a
 * secret has the same value in a file, a variable and a settings file.
 */
function trimmed(value: unknown, { secret }: Setting): unknown {
  if (secret && Array.isArray(value)) return value.map(item => (typeof item === 'string' ? item.trim() : item))
  return typeof value === 'string' ? value.trim() : value
}

function rejectionMessage(
  { secret, type }: Setting,
  value: unknown,
  reason: string | undefined,
  file?: string
): string {
  const because = reason ? `, because ${reason}` : ''
  if (file !== undefined && type.isFileContent) {
    return `cannot be read from the file ${file}${because}. The file must contain ${type.allowed}.`
  }
  const found = secret ? (reason ? 'used' : typeName(value)) : describe(value)
  return `cannot be ${found}${because}. Set it to ${type.allowed}.`
}

function describe(value: unknown): string {
  if (typeof value === 'string') return `the string ${quote(maskUrl(value))}`
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value) && value.every(item => typeof item === 'string')) return `the list ${quote(value.join(' '))}`
  return typeName(value)
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a mapping'
  return `a ${typeof value}`
}

/** Checks one value as `checkValue` does. If the value is a path, makes it absolute, and checks the file or folder. */
export async function checkValueAndPath(key: SettingKey, value: unknown, cwd: string, file?: string): Promise<Checked> {
  const checked = checkValue(key, value, file)
  const { allowed, whyUnusable } = settingOf(key).type
  if (!whyUnusable || !('value' in checked)) return checked
  const given = String(checked.value)
  const path = resolve(cwd, given)
  let why: string | undefined
  try {
    why = await whyUnusable(path)
  } catch (error) {
    if (error instanceof PageFilesError) {
      return { rejected: error.problems.map(problem => `cannot be the string ${quote(given)}, because ${problem}`) }
    }
    why = whyUnreadable(error)
  }
  if (why === undefined) return { value: path }
  // The operator may have given the key itself instead of the path of its file, so the message must not quote it.
  const found = given.includes('PRIVATE KEY') ? 'the key itself' : `the string ${quote(given)}, because ${why}`
  return { rejected: [`cannot be ${found}. Set it to the path of ${allowed}.`] }
}

/**
 * Returns the folder `wwwroot` in the working directory, which is served if no other folder is configured. If this
 * folder does not exist, the value is undefined.
 */
export async function defaultFolder(cwd: string): Promise<Checked> {
  const why = await whyNoFolder(join(cwd, 'wwwroot'))
  return why === noSuchFolder || why === notAFolder
    ? { value: undefined }
    : checkValueAndPath('wwwroot', 'wwwroot', cwd)
}
