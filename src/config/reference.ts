import { flagName } from './flags.js'
import { defaultText, type SettingKey, settingKeys, settingOf } from './settings.js'

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
