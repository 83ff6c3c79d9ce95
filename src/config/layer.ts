import { isJsonObject } from '../support/json.js'
import { nearest } from '../support/nearest.js'
import type { Problem } from './errors.js'
import { groups, isSettingKey, type SettingKey, settingKeys, settingOf } from './settings.js'
import { readText } from './types.js'

/** The unchecked settings of one source: the flags, a program, the environment or a file. */
export interface Layer {
  readonly given: ReadonlyMap<SettingKey, Given>
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

/** One setting in a source. It has a value, the reason why its value is rejected, or a request for the default. */
export type Given = {
  readonly origin: string
  /** The absolute path of the file, for a secret that has its own file. */
  readonly secretFile?: string
} & ({ readonly value: unknown } | { readonly rejected: string } | { readonly useDefault: true })

export const emptyLayer: Layer = { given: new Map(), problems: [], warnings: [] }

/**
 * Reads nested settings from a file or a program. A text may have the form that a variable has, such as `"8096"` for a port.
 * @param nullIsDefault if true, `null` requests the default; otherwise a setting that is `null` counts as not set
 */
export function layerOfObject(object: unknown, origin: string, { nullIsDefault = false } = {}): Layer {
  const given = new Map<SettingKey, Given>()
  const problems: Problem[] = []
  const reject = (key: string, message: string) => void problems.push({ key, origin, message })

  function add(key: string, value: unknown) {
    if (!isSettingKey(key)) reject(key, unknownKey(key))
    else if (value !== null || (settingOf(key).rejectsEmpty && !nullIsDefault))
      given.set(key, { origin, value: typeof value === 'string' ? readText(settingOf(key).type, value) : value })
    else if (nullIsDefault) given.set(key, { origin, useDefault: true })
  }

  if (!isJsonObject(object)) {
    reject('settings', 'must be a mapping of settings to values')
    return { ...emptyLayer, problems }
  }
  for (const [name, value] of Object.entries(object)) {
    if (name === '$schema') continue
    if (isSettingKey(name) && name.includes('.')) reject(name, writtenFlat(name))
    else if (!groups.includes(name)) add(name, value)
    else if (isJsonObject(value)) for (const [member, inner] of Object.entries(value)) add(`${name}.${member}`, inner)
    // If an empty `access:` counted as not set, everyone could sign in.
    else if (value === null && !nullIsDefault) for (const key of strictMembersOf(name)) add(key, null)
    // The message does not contain the value, because it may be a secret that belongs one level deeper.
    else if (value !== null && value !== undefined) reject(name, `must be a group with the settings ${membersOf(name)}`)
  }
  return { given, problems, warnings: [] }
}

function unknownKey(key: string): string {
  const lastPart = (name: string) => name.slice(name.indexOf('.') + 1)
  const guess = nearest(key, [...settingKeys, ...groups], name => [name, lastPart(name)])
  return `is not a setting${guess ? `; did you mean ${guess}?` : ''}`
}

function writtenFlat(key: string): string {
  const [group, member] = key.split('.')
  return `must be nested: ${member} under ${group}`
}

function strictMembersOf(group: string): readonly SettingKey[] {
  return settingKeys.filter(key => key.startsWith(`${group}.`) && settingOf(key).rejectsEmpty)
}

function membersOf(group: string): string {
  return settingKeys
    .filter(key => key.startsWith(`${group}.`))
    .map(key => key.slice(group.length + 1))
    .join(', ')
}
