import { type SettingKey, settingOf } from './settings.js'

// Values that work, but that were probably meant to be read differently.

/**
 * Returns warnings about a value as its source gives it, worded like `ConfigProblem.message`. They contain no part of the value.
 * @param isInFile true for a value from the settings file, whose author may expect it to replace the names of variables
 */
export function oddities(key: SettingKey, value: unknown, { isInFile }: { readonly isInFile: boolean }): string[] {
  const strings = (Array.isArray(value) ? value : [value]).filter(item => typeof item === 'string')
  const isSecret = settingOf(key).secret === true
  return Object.entries({
    // `docker run --env-file` keeps quotation marks, which belong to the value for no other program.
    'begins and ends with a quotation mark, which counts as a part of the value. Remove the two quotation marks, unless the value really contains them.':
      (string: string) => /^(["'`]).*\1$/s.test(string.trim()) && string.trim().length > 1,
    // Line breaks at the end of a secret are usual, because editors and `echo` write them into the file of a secret.
    'begins or ends with spaces, which are removed. Remove them where the value is set, because other programs may keep them.':
      (string: string) => isSecret && string.replace(/^[\r\n]+|[\r\n]+$/g, '') !== string.trim(),
    'contains the name of a variable after "$", which is not replaced with its value in a settings file. Set the variable of this setting instead.':
      (string: string) => isInFile && /\$\{\w+[^}]*\}|\$\(\w+\)|^\s*\$\w+\s*$/.test(string)
  }).flatMap(([message, applies]) => (strings.some(applies) ? [message] : []))
}
