import { isJsonObject } from '../../base/json.js'
import { groupsOf, type Row } from '../types/setting.js'
import { readString } from '../types/value-type.js'
import { emptyLayer, type Given, type Layer, type SettingsFinding } from './layer.js'

/**
 * Reads nested settings from a file or an application. A string may have the same form as in a variable, such as `"8096"`
 * for a port.
 * @param nullIsDefault if true, `null` requests the default; otherwise a setting that is `null` counts as not set
 */
export function layerOfObject(
  object: unknown,
  source: string,
  rows: readonly Row[],
  { nullIsDefault = false } = {}
): Layer {
  const given = new Map<string, Given>()
  const findings: SettingsFinding[] = []
  const reject = (key: string, message: string, value?: unknown) =>
    void findings.push({ key: shownKey(key, value), source, message })
  const rowOf = new Map(rows.map(row => [row.key, row]))
  const groups = groupsOf(rows.map(({ key }) => key))
  const membersOf = (group: string) => rows.filter(({ key }) => key.startsWith(`${group}.`))
  const namesIn = (group: string) =>
    membersOf(group)
      .map(({ key }) => key.slice(group.length + 1))
      .join(', ')

  function unknown(key: string): string {
    const [name = '', member] = key.split('.')
    if (member !== undefined && groups.includes(name))
      return `is not a setting. The settings of ${name} are ${namesIn(name)}.`
    const group = groups.find(group => rowOf.has(`${group}.${name}`))
    if (group !== undefined) return `is not a setting. Write it inside the group ${group}.`
    const names = rows.map(row => row.key).filter(key => !key.includes('.'))
    return `is not a setting. The settings are ${[...names, ...groups].join(', ')}.`
  }

  function add(key: string, value: unknown) {
    const row = rowOf.get(key)
    if (!row) reject(key, unknown(key), value)
    else if (value !== null || (row.rejectsEmpty && !nullIsDefault))
      given.set(key, { source, value: typeof value === 'string' ? readString(row.type, value) : value })
    else if (nullIsDefault) given.set(key, { source, useDefault: true })
  }

  if (!isJsonObject(object)) {
    reject('settings', 'must be a mapping of settings to values.')
    return { ...emptyLayer, findings }
  }
  for (const [name, value] of Object.entries(object)) {
    const [group, member] = name.split('.')
    if (name === '$schema') continue
    if (member !== undefined && rowOf.has(name))
      reject(name, `must be nested. Write ${member} inside the group ${group}.`)
    else if (!groups.includes(name)) add(name, value)
    else if (isJsonObject(value)) for (const [member, inner] of Object.entries(value)) add(`${name}.${member}`, inner)
    // If an empty `access:` counted as not set, everyone could sign in.
    else if (value === null && !nullIsDefault) for (const { key } of membersOf(name)) add(key, null)
    // The message does not contain the value, because it may be a secret that belongs one level deeper.
    else if (value !== null && value !== undefined) reject(name, `must be a group with the settings ${namesIn(name)}.`)
  }
  return { given, findings }
}

/**
 * A secret may have been written in the place of a name, so a name that is not a word is not shown. A word without a value may be
 * the end of a secret, as in `{clientSecret: one, two}`.
 */
function shownKey(key: string, value: unknown): string {
  const shown = key.replace(/[^.]+/g, name => (/^[$_A-Za-z]{1,30}$/.test(name) ? name : '…'))
  return value === null ? shown.replace(/[^.]+$/, '…') : shown
}
