import { resolve } from 'node:path'
import { whyUnreadable } from '../base/text-file.js'
import { PageFilesError } from '../pages/index.js'
import { type Setting, type SettingKey, settingOf } from './settings.js'
import type { Checked } from './types/value-type.js'

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

function rejectionMessage({ type }: Setting, value: unknown, reason: string | undefined, file?: string): string {
  const because = reason ? `, because ${reason}` : ''
  if (file !== undefined && type.isFileContent) {
    return `cannot be read from the file ${file}${because}. The file must contain ${type.allowed}.`
  }
  const kind = Array.isArray(value) ? 'a list' : 'a mapping'
  const found = typeof value === 'object' && !reason ? kind : 'used'
  return `cannot be ${found}${because}. Set it to ${type.allowed}.`
}

/** Checks one value as `checkValue` does. If the value is a path, makes it absolute, and checks the file or folder. */
export async function checkValueAndPath(key: SettingKey, value: unknown, cwd: string, file?: string): Promise<Checked> {
  const checked = checkValue(key, value, file)
  const { allowed, whyUnusable } = settingOf(key).type
  if (!whyUnusable || !('value' in checked)) return checked
  const path = resolve(cwd, String(checked.value))
  let why: string | undefined
  try {
    why = await whyUnusable(path)
  } catch (error) {
    if (error instanceof PageFilesError) {
      return { rejected: error.problems.map(problem => `cannot be used, because ${problem}`) }
    }
    why = whyUnreadable(error)
  }
  if (why === undefined) return { value: path }
  return { rejected: [`cannot be used, because ${why}. Set it to the path of ${allowed}.`] }
}

/**
 * Returns warnings about a secret that works, but was probably meant to be read differently. They contain no part of the value.
 * @param value the value as its source gives it
 */
export function doubtsAbout({ secret, type }: Setting, value: unknown): string[] {
  const strings = (Array.isArray(value) ? value : [value]).filter(item => typeof item === 'string')
  if (!secret) return []
  const doubts = strings.flatMap(string => {
    const trimmed = string.trim()
    return [
      // `docker run --env-file` keeps quotation marks, which belong to the value for no other program.
      /^(["'`]).*\1$/s.test(trimmed) &&
        trimmed.length > 1 &&
        'begins and ends with a quotation mark, which counts as a part of the value. Remove the two quotation marks, unless the value really contains them.',
      // Line breaks at the end of a secret are usual, because editors and `echo` write them into the file of a secret.
      string.replace(/^[\r\n]+|[\r\n]+$/g, '') !== trimmed &&
        'begins or ends with spaces, which are removed. Remove them where the value is set, because other programs may keep them.',
      type.doubt?.(trimmed)
    ].filter(doubt => typeof doubt === 'string')
  })
  return [...new Set(doubts)]
}
