import { fileURLToPath } from 'node:url'
import { isJsonObject } from '../base/json.js'
import type { PrivateFile } from './sources/layer.js'
import { settings } from './table.js'
import { flagName, groupsOf, namesFile, type Row, required, type Setting } from './types/setting.js'
import type { ValueType } from './types/value-type.js'

/** The types of the settings, and the names and texts that follow from the rows of the table (`table.ts`). */

export { flagName, namesFile, required, type Setting, settings }

/**
 * The folder of the packaged starter page. The server serves this folder if the operator has no folder of static files.
 */
export const STARTER_PAGE = fileURLToPath(new URL('../../wwwroot', import.meta.url))

export type SettingKey = keyof typeof settings

type Group = SettingKey extends infer Key ? (Key extends `${infer Name}.${string}` ? Name : never) : never
type Member<Name extends Group> = Extract<SettingKey, `${Name}.${string}`> extends `${Name}.${infer Key}` ? Key : never
type TopKey = Exclude<SettingKey, `${string}.${string}`>

type SettingRow<Key extends SettingKey> = (typeof settings)[Key]
/** The name of a setting in its group of `Config`, which ends in the unit of the value. */
type Field<Key extends string, Name extends string> = Key extends SettingKey
  ? SettingRow<Key> extends { type: { unit: infer Unit extends string } }
    ? `${Name}${Unit}`
    : Name
  : never
type OrUndefined<Key extends SettingKey, Value> =
  SettingRow<Key> extends { default: unknown } ? Value : Value | undefined
/** The types of a setting: `value` is what the server uses, and `written` is what a file or an application contains. */
type TypesOf<Key extends string> = Key extends SettingKey
  ? SettingRow<Key> extends { type: ValueType<infer Value, infer Written> }
    ? { value: OrUndefined<Key, Value>; written: OrUndefined<Key, Written> }
    : never
  : never

/**
 * The valid settings, with all defaults. The values are parsed: for example, `apiProxy.rules` is a list of `ProxyRule`
 * objects, and `redis.url` is an object with the hosts. Neither is a string. A duration is a number of seconds and a size is a
 * number of bytes, which the name of the field says, such as `platform.timeoutSeconds` for the setting `platform.timeout`. An
 * optional setting without a default is `undefined` if it was not set. The part of a key before the dot is the name of a group.
 */
export type Config = { readonly [Key in TopKey as Field<Key, Key>]: TypesOf<Key>['value'] } & {
  readonly [Name in Group]: {
    readonly [Key in Member<Name> as Field<`${Name}.${Key}`, Key>]: TypesOf<`${Name}.${Key}`>['value']
  }
} & {
  /** The files from which settings were read, and other files that must not be public. */
  readonly privateFiles?: readonly PrivateFile[]
}

/** The settings by key, without groups. Invalid settings, and required settings that no source sets, are left out. */
export type Values = { readonly [Key in SettingKey]?: TypesOf<Key>['value'] }

/** The values on the command line. The value of a repeatable flag is a list, and that of a flag such as `--log-requests` a boolean. */
export type Flags = { readonly [Key in SettingKey]?: string | boolean | readonly string[] }

/** Settings from an application. `null` selects the default, even if the environment or a file has a value for the setting. */
export type Settings = { readonly [Key in TopKey]?: TypesOf<Key>['written'] | null } & {
  readonly [Name in Group]?: { readonly [Key in Member<Name>]?: TypesOf<`${Name}.${Key}`>['written'] | null }
}

export const settingKeys = Object.keys(settings) as readonly SettingKey[]

/** All rows of the table. */
export const rows: readonly (Row & { readonly key: SettingKey })[] = settingKeys.map(key => ({
  key,
  env: variableOf(key),
  ...settings[key]
}))
const rowOf = new Map(rows.map(row => [row.key, row]))

/**
 * Returns the row of a setting, with the name of its environment variable filled in. The type is the same for all
 * settings, so that code can handle every row alike.
 */
export function settingOf(key: SettingKey): Row {
  return rowOf.get(key) as Row
}

/**
 * Returns the name of the environment variable for a setting whose row does not contain this name. For example,
 * `apiProxy.timeout` is set by PLATFORM_AUTH_API_PROXY_TIMEOUT, and `redis.url` by REDIS_URL.
 */
function variableOf(key: SettingKey): string {
  const words = key.replace('.', '_').replace(/[A-Z]/g, letter => `_${letter}`)
  return `${/^(platform|redis|log)\./.test(key) ? '' : 'PLATFORM_AUTH_'}${words.toUpperCase()}`
}

/** Returns the path of a setting in `Config`. It ends in the unit of the value, as in `platform.timeoutSeconds`. */
export function fieldOf(key: SettingKey): string {
  return `${key}${settingOf(key).type.unit ?? ''}`
}

/** Returns the value as a settings file would contain it. */
export function writtenValue(key: SettingKey, value: unknown): unknown {
  const { type } = settingOf(key)
  return value !== undefined && type.write ? type.write(value) : value
}

/** The replacement for a secret. Its length does not depend on the secret. */
const hidden = '********'

/**
 * Returns a valid value as messages and the command `config` show it: URLs without user and query, parameters by name only, and
 * secrets hidden. A value that was refused is never shown, because a secret may have been pasted into the wrong setting.
 */
export function shownValue(key: SettingKey, value: unknown): unknown {
  const { secret, type } = settingOf(key)
  const written = writtenValue(key, value)
  if (written === undefined || (Array.isArray(written) && written.length === 0)) return written
  return type.mask ? type.mask(written) : secret ? hidden : written
}

/** Returns the value at a path such as `platform.timeoutSeconds`, or a group. An incomplete configuration may lack it. */
export function settingIn(config: Config, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (isJsonObject(value) ? value[name] : undefined), config)
}

export const groups = groupsOf(settingKeys)

export function membersOf(group: string): readonly SettingKey[] {
  return settingKeys.filter(key => key.startsWith(`${group}.`))
}

/** Describes the default in the reference, in `--help` and in settings files. */
export function defaultText(key: SettingKey): string {
  const { default: value, defaultText } = settingOf(key)
  if (defaultText !== undefined) return defaultText
  if (value === required) return 'required'
  if (value === undefined) return 'none'
  const written = writtenValue(key, value)
  return Array.isArray(written) ? written.join(' ') || 'none' : String(written)
}
