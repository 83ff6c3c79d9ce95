import { resolve } from 'node:path'
import { errorCode } from '../base/error-code.js'
import { isJsonObject } from '../base/json.js'
import type { Checked } from './check-value.js'
import { dotEnvFile, type Environment, readDotEnv } from './dot-env.js'
import { type ConfigProblem, quote } from './errors.js'
import { exposedFile, readTextFile, statIfPossible, whyUnreadable } from './files.js'
import {
  flagName,
  groups,
  isSettingKey,
  membersOf,
  namesFile,
  type SettingKey,
  settingKeys,
  settingOf
} from './settings.js'
import { readString, type ValueType } from './types.js'
import { keyOfVariable, unassignedLines, unknownVariables, type Variable } from './unknown-variables.js'

/**
 * The sources of settings: the flags, the settings that an application passes, the environment with `.env`, and secret files.
 * `file.ts` finds and reads the settings file.
 */

/** The unchecked settings of one source. */
export interface Layer {
  readonly given: ReadonlyMap<SettingKey, Given>
  readonly problems: readonly ConfigProblem[]
  readonly warnings: readonly ConfigProblem[]
}

/** One setting in a source. It has a value, the reasons why its value is rejected, or a request for the default. */
export type Given = {
  readonly source: string
  /** The absolute path of the file, for a secret that has a separate file. */
  readonly secretFile?: string
} & (Checked | { readonly useDefault: true })

export const emptyLayer: Layer = { given: new Map(), problems: [], warnings: [] }

/**
 * Reads nested settings from a file or an application. A string may have the same form as in a variable, such as `"8096"`
 * for a port.
 * @param nullIsDefault if true, `null` requests the default; otherwise a setting that is `null` counts as not set
 */
export function layerOfObject(object: unknown, source: string, { nullIsDefault = false } = {}): Layer {
  const given = new Map<SettingKey, Given>()
  const problems: ConfigProblem[] = []
  const reject = (key: string, message: string) => void problems.push({ key, source, message })

  function add(key: string, value: unknown) {
    if (!isSettingKey(key)) reject(shownKey(key), unknownSetting(key))
    else if (value !== null || (settingOf(key).rejectsEmpty && !nullIsDefault))
      given.set(key, { source, value: typeof value === 'string' ? readString(settingOf(key).type, value) : value })
    else if (nullIsDefault) given.set(key, { source, useDefault: true })
  }

  if (!isJsonObject(object)) {
    reject('settings', 'must be a mapping of settings to values.')
    return { ...emptyLayer, problems }
  }
  for (const [name, value] of Object.entries(object)) {
    if (name === '$schema') continue
    if (isSettingKey(name) && name.includes('.')) reject(name, writtenFlat(name))
    else if (!groups.includes(name)) add(name, value)
    else if (isJsonObject(value)) for (const [member, inner] of Object.entries(value)) add(`${name}.${member}`, inner)
    // If an empty `access:` counted as not set, everyone could sign in.
    else if (value === null && !nullIsDefault) for (const key of membersOf(name)) add(key, null)
    // The message does not contain the value, because it may be a secret that belongs one level deeper.
    else if (value !== null && value !== undefined) reject(name, `must be a group with the settings ${namesIn(name)}.`)
  }
  return { given, problems, warnings: [] }
}

/** A secret may have been written in the place of a name, so a name that is not a word is not shown. */
function shownKey(key: string): string {
  return key.replace(/[^.]+/g, name => (/^[$_A-Za-z]{1,30}$/.test(name) ? name : '…'))
}

function unknownSetting(key: string): string {
  const [name = '', member] = key.split('.')
  const group = groups.find(group => isSettingKey(`${group}.${name}`))
  if (member !== undefined) return `is not a setting. The settings of ${name} are ${namesIn(name)}.`
  if (group !== undefined) return `is not a setting. Write it inside the group ${group}.`
  return `is not a setting. The settings are ${[...settingKeys.filter(key => !key.includes('.')), ...groups].join(', ')}.`
}

function namesIn(group: string): string {
  return membersOf(group)
    .map(key => key.slice(group.length + 1))
    .join(', ')
}

function writtenFlat(key: string): string {
  const [group, member] = key.split('.')
  return `must be nested. Write ${member} inside the group ${group}.`
}

/**
 * The values on the command line. The value of a repeatable flag is a list, and the value of a flag such as
 * `--log-requests` is a boolean.
 */
export type Flags = { readonly [Key in SettingKey]?: FlagValue }
type FlagValue = string | boolean | readonly string[]

export async function layerOfFlags(flags: Flags, cwd: string): Promise<Layer> {
  const given = new Map<SettingKey, Given>()
  const warnings: ConfigProblem[] = []
  for (const [key, value] of Object.entries(flags)) {
    if (!isSettingKey(key) || value === undefined) continue
    const found = await givenByFlag(key, value, cwd)
    given.set(key, found)
    const { env, flag } = settingOf(key)
    // The process list shows the values of flags.
    if (namesFile(flag) || !containsSecret(key, value)) continue
    const message = `contains a password that every process on this machine can read. Use the variable ${env} or ${env}_FILE instead.`
    warnings.push({ key, source: found.source, message })
  }
  return { given, problems: [], warnings }
}

async function givenByFlag(key: SettingKey, value: FlagValue, cwd: string): Promise<Given> {
  const { flag, type } = settingOf(key)
  const source = `flag ${flagName(flag ?? key)}`
  if (typeof value === 'boolean') return { source, value }
  if (typeof value !== 'string') return { source, value: value.flatMap(string => readString(type, string)) }
  if (!namesFile(flag)) return { source, value: readString(type, value.trim()) }
  // An empty variable counts as not set, but an empty file named by a flag is a mistake.
  return readSecretFile(value, { cwd, source, type, mayBeEmpty: false })
}

/** True if a value contains the secret of its setting. The URL of Redis contains a secret only if it has a password. */
export function containsSecret(key: SettingKey, value: unknown): boolean {
  const { secret = false, type } = settingOf(key)
  return secret && (typeof value !== 'string' || (type.containsSecret?.(value) ?? true))
}

/**
 * Reads the settings from the variables of the process and from a `.env` file in the working directory. A variable of the
 * process overrides the same variable in `.env`.
 */
export async function layerOfEnvironment(env: Environment, cwd: string): Promise<Layer> {
  const { fromDotEnv, whyOdd, otherLines, problems } = await readDotEnv(cwd)
  const variables = new Map<string, Variable>()
  const add = (values: Environment, isInDotEnv: boolean) => {
    for (const [name, value] of Object.entries(values)) {
      const source = `variable ${name}${isInDotEnv ? ' in .env' : ''}`
      if (value !== undefined) variables.set(name, { name, value, source, isInDotEnv })
    }
  }
  add(fromDotEnv, true)
  add(env, false)

  const given = new Map<SettingKey, Given>()
  const unknown = unknownVariables([...variables.values()])
  const unassigned = unassignedLines(otherLines)
  const warnings: ConfigProblem[] = [
    ...(await exposedFile(dotEnvFile(cwd))),
    ...unassigned.warnings,
    ...unknown.warnings
  ]
  for (const { name, value, source, isInDotEnv } of variables.values()) {
    const reason = isInDotEnv && whyOdd(name)
    const key = keyOfVariable(name)
    if (!reason || !key) continue
    const shown = settingOf(key).secret && !name.endsWith('_FILE') ? `${value.length} characters` : quote(value)
    warnings.push({ key, source, message: `is read as ${shown}, because ${reason}` })
  }
  for (const key of settingKeys) {
    const { env: name, tutorialEnv } = settingOf(key)
    const found = await givenByVariable(key, name, variables, cwd)
    const fallback =
      tutorialEnv && (!found || isEmpty(found)) && (await givenByVariable(key, tutorialEnv, variables, cwd))
    if (fallback && !isEmpty(fallback)) {
      given.set(key, fallback)
      const message = `is used because ${name} is not set. Rename the variable to ${name}.`
      warnings.push({ key, source: fallback.source, message })
    } else if (found) given.set(key, found)
  }
  return { given, problems: [...problems, ...unassigned.problems, ...unknown.problems], warnings }
}

async function givenByVariable(
  key: SettingKey,
  name: string,
  variables: ReadonlyMap<string, Variable>,
  cwd: string
): Promise<Given | undefined> {
  const { secret, type, default: fallback } = settingOf(key)
  const direct = variables.get(name)
  const file = secret ? variables.get(`${name}_FILE`) : undefined
  if (direct?.value && file?.value) {
    return { source: direct.source, rejected: [`is also set by the ${file.source}. Remove one of the two variables.`] }
  }
  const variable = file?.value ? file : direct
  if (!variable) return undefined
  const { source } = variable
  const value = variable.value.trim()
  if (/[\r\n]/.test(value) && variable.isInDotEnv && !severalLinesAllowed.has(variable.name)) {
    const allowed = variable === file ? 'the path of a file' : type.allowed
    return { source, rejected: [`${severalLines} Set it to ${allowed}.`] }
  }
  if (variable === file) {
    // If an empty file for the client key or the Redis URL were accepted, the server would run without the key or
    // without Redis. The file with the previous session secrets may be empty, and an empty file for a required secret
    // is reported as a missing setting.
    return readSecretFile(variable.value, { cwd, source, type, mayBeEmpty: fallback !== undefined })
  }
  // An empty string counts as not set, also for a setting whose strings are converted to lists.
  if (value === '') return { source, value }
  return { source, value: secret ? variable.value : readString(type, value) }
}

// A value in `.env` without a closing quotation mark also contains the following lines and their secrets. If such a value
// were accepted as a list of scopes, the server would send these secrets to the provider.
const severalLines = 'has more than one line, perhaps because a closing quotation mark is missing.'
const severalLinesAllowed = new Set(
  (['session.previousSecrets', 'apiProxy.rules', 'platform.clientKey'] as const).map(key => settingOf(key).env)
)

/**
 * True if a setting counts as not set. An empty variable counts as not set, because compose files and CI systems set a
 * variable without a value to ''.
 */
export function isEmpty(given: Given): boolean {
  if (!('value' in given)) return false
  const { value } = given
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
}

/** Reads a secret from a file. */
async function readSecretFile(
  path: string,
  { cwd, source, type, mayBeEmpty }: { cwd: string; source: string; type: ValueType<unknown>; mayBeEmpty: boolean }
): Promise<Given> {
  const secretFile = resolve(cwd, path)
  try {
    const value = await readTextFile(secretFile)
    if (mayBeEmpty || value.trim() !== '') return { source, secretFile, value }
    const message = `cannot be read from the file ${path}, because the file is empty. The file must contain ${type.allowed}.`
    return { source, rejected: [message] }
  } catch (error) {
    const isMissing = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(errorCode(error) ?? '')
    const isShown = !isMissing || (type.isFileContent ? !looksLikeKey(path) : await looksLikePath(path, cwd))
    const file = isShown ? `the file ${path}` : 'a file'
    const message = `cannot be read from ${file}, because ${whyUnreadable(error)}. Set it to the path of a file that contains the secret.`
    return { source, rejected: [message] }
  }
}

// A path that does not exist may be the secret itself, given by mistake. Messages show the path only if this is ruled
// out.

function looksLikeKey(path: string): boolean {
  return path.length >= 500 || /PRIVATE KEY|[{}\r\n]/.test(path)
}

/**
 * True if the path has a typical extension of a secret file, or if it begins with a folder that exists. Neither is true
 * for a secret.
 */
async function looksLikePath(path: string, cwd: string): Promise<boolean> {
  if (path.length < 500 && /^\S+\.(txt|secret|key|pem)$/.test(path)) return true
  const [folder] = /^(?:\/|(?:\.\.?\/)*)[^/]+(?=\/)/.exec(path) ?? []
  if (folder === undefined) return false
  return (await statIfPossible(resolve(cwd, folder)))?.isDirectory() === true
}
