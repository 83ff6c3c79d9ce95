import type { Problem } from './errors.js'
import { nearest } from './nearest.js'
import { groups, isSettingKey, type SettingKey, settingKeys, settingOf } from './settings.js'

/** What one source (flags, a program, the environment, a file) says, before anything is checked. */
export interface Layer {
  readonly given: ReadonlyMap<SettingKey, Given>
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
}

/** What a source says of one setting: a value, a reason why there is none, or the request for the default. */
export type Given = {
  readonly origin: string
  /** Absolute path of the file that holds the value, for a secret in a file of its own. */
  readonly secretFile?: string
} & ({ readonly value: unknown } | { readonly refused: string } | { readonly useDefault: true })

export const emptyLayer: Layer = { given: new Map(), problems: [], warnings: [] }

/**
 * Reads nested settings, as a file or a program gives them. `null` says nothing, or asks for the default if
 * `nullIsDefault`.
 */
export function layerOfObject(object: unknown, origin: string, { nullIsDefault = false } = {}): Layer {
  const given = new Map<SettingKey, Given>()
  const problems: Problem[] = []
  const refuse = (key: string, message: string) => void problems.push({ key, origin, message })

  function take(key: string, value: unknown) {
    if (!isSettingKey(key)) refuse(key, unknownKey(key))
    else if (value !== null || (settingOf(key).refusesEmpty && !nullIsDefault)) given.set(key, { origin, value })
    else if (nullIsDefault) given.set(key, { origin, useDefault: true })
  }

  if (!isMapping(object)) {
    refuse('settings', 'must be a mapping of settings to values')
    return { ...emptyLayer, problems }
  }
  for (const [name, value] of Object.entries(object)) {
    if (name === '$schema') continue
    if (isSettingKey(name) && name.includes('.')) refuse(name, writtenFlat(name))
    else if (!groups.includes(name)) take(name, value)
    else if (isMapping(value)) for (const [member, inner] of Object.entries(value)) take(`${name}.${member}`, inner)
    // `access:` with nothing below it would otherwise let everybody in.
    else if (value === null && !nullIsDefault) for (const key of strictMembersOf(name)) take(key, null)
    // The value stays unsaid: it may be a secret that was written one level too high.
    else if (value !== null && value !== undefined) refuse(name, `is a group of settings: ${membersOf(name)}`)
  }
  return { given, problems, warnings: [] }
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function unknownKey(key: string): string {
  const lastPart = (name: string) => name.slice(name.indexOf('.') + 1)
  const guess = nearest(key, [...settingKeys, ...groups], name => [name, lastPart(name)])
  return `is no setting${guess ? `; did you mean ${guess}?` : ''}`
}

function writtenFlat(key: string): string {
  const [group, member] = key.split('.')
  return `must be nested: ${member} under ${group}`
}

function strictMembersOf(group: string): readonly SettingKey[] {
  return settingKeys.filter(key => key.startsWith(`${group}.`) && settingOf(key).refusesEmpty)
}

function membersOf(group: string): string {
  return settingKeys
    .filter(key => key.startsWith(`${group}.`))
    .map(key => key.slice(group.length + 1))
    .join(', ')
}
