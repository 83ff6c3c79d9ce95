import { stringify } from 'yaml'
import { membersOf, type SettingKey, settingOf, type Values, writtenValue } from './settings.js'

/**
 * Returns a settings file in YAML with these settings. A setting without a value in `chosen` is commented out.
 * @param comments the lines above a setting
 */
export function settingsYaml(
  header: readonly string[],
  keys: readonly SettingKey[],
  chosen: Values,
  comments: (key: SettingKey) => readonly string[]
): string {
  const lines = [...header]
  let openGroup: string | undefined
  for (const key of keys) {
    const [first, member] = key.split('.')
    const group = member === undefined ? undefined : first
    lines.push('')
    if (group !== undefined && group !== openGroup) lines.push(groupLine(group, chosen))
    openGroup = group
    const indent = group === undefined ? '' : '  '
    const value = valueLines(member ?? key, writtenValue(key, chosen[key]), settingOf(key).type.sample)
    lines.push(...[...comments(key), ...value].map(line => indent + line))
  }
  return `${lines.join('\n')}\n`
}

// An empty group has the same effect as an empty value for each of its settings. If a member must not be empty, the line of such
// a group is therefore commented out.
function groupLine(group: string, chosen: Values): string {
  const members = membersOf(group)
  const isEmpty = members.every(key => chosen[key] === undefined)
  return isEmpty && members.some(key => settingOf(key).rejectsEmpty) ? `# ${group}:` : `${group}:`
}

function valueLines(name: string, value: unknown, sample: readonly string[] | undefined): string[] {
  const items = Array.isArray(value) ? value : []
  if (sample && items.length > 0) return [`${name}:`, ...items.map(item => `  - ${yamlOf(item)}`)]
  if (sample) return [`# ${name}:`, ...sample.map(item => `#   - ${item}`)]
  return [value === undefined ? `# ${name}:` : `${name}: ${yamlOf(value)}`]
}

function yamlOf(value: unknown): string {
  return stringify(Array.isArray(value) ? value.join(' ') : value, { lineWidth: 0 }).trimEnd()
}
