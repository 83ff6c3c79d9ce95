import { flagName } from './flags.js'
import { defaultText, groups, required, type SettingKey, settingKeys, settingOf } from './settings.js'
import type { JsonSchema } from './types.js'

/**
 * Returns the JSON Schema of a settings file, for editors. The server also checks rules that the schema cannot express,
 * such as rules between settings.
 */
export function jsonSchema(): JsonSchema {
  const topKeys = settingKeys.filter(key => !key.includes('.'))
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Settings of platform-auth-server',
    type: 'object',
    additionalProperties: false,
    properties: {
      $schema: { type: 'string' },
      ...Object.fromEntries(topKeys.map(key => [key, schemaOf(key)])),
      ...Object.fromEntries(groups.map(group => [group, schemaOfGroup(group)]))
    }
  }
}

function schemaOfGroup(group: string): JsonSchema {
  const members = settingKeys.filter(key => key.startsWith(`${group}.`))
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(members.map(key => [key.slice(group.length + 1), schemaOf(key)]))
  }
}

function schemaOf(key: SettingKey): JsonSchema {
  const { type, default: value, env, secret, summary } = settingOf(key)
  const advice = secret
    ? ` To keep this secret out of files that others can read, set ${env} or ${env}_FILE instead.`
    : ` The environment variable ${env} also sets this.`
  const known = value === undefined || value === required || secret ? {} : { default: value }
  return { description: `${summary}${advice}`, ...type.json, ...known }
}

const referenceBegin = '<!-- settings:begin -->'
const referenceEnd = '<!-- settings:end -->'

/** The settings in the table of the README. docs/configuration.md has the table of all settings. */
export const everydaySettings = [
  'mode',
  'port',
  'wwwroot',
  'platform.clientId',
  'platform.clientSecret',
  'platform.callbackUrl',
  'session.secret',
  'proxy.routes'
] as const satisfies readonly SettingKey[]

/** Puts the table of these settings, of all by default, between the two markers of a Markdown text. */
export function withReference(markdown: string, keys: readonly SettingKey[] = settingKeys): string {
  const begin = markdown.indexOf(referenceBegin)
  const end = markdown.indexOf(referenceEnd)
  if (begin < 0 || end < begin) throw new Error(`the markers ${referenceBegin} and ${referenceEnd} are missing`)
  return `${markdown.slice(0, begin + referenceBegin.length)}\n${referenceTable(keys)}\n${markdown.slice(end)}`
}

/**
 * Returns a Markdown table with one row for each setting. Each cell has several lines, because a table with a column for
 * each of them is wider than the page.
 */
export function referenceTable(keys: readonly SettingKey[] = settingKeys): string {
  const rows = keys.map(key => {
    const { env, flag, shortFlag, type, secret, summary } = settingOf(key)
    const flags = [shortFlag, flag && flagName(flag)].filter(name => name !== undefined)
    const names = [key, env, ...(secret ? [`${env}_FILE`] : []), ...flags]
    const meaning = [summary, `*Allowed:* ${type.allowed}`, `*Default:* ${defaultText(key)}`]
    return [names.map(name => `\`${name}\``), meaning.map(cell)].map(lines => lines.join('<br>'))
  })
  return [['setting', 'meaning'], ['---', '---'], ...rows].map(row => `| ${row.join(' | ')} |`).join('\n')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
