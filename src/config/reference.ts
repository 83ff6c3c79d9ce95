import { flagName } from './flags.js'
import { defaultText, settingKeys, settingOf } from './settings.js'

export const referenceBegin = '<!-- settings:begin -->'
export const referenceEnd = '<!-- settings:end -->'

/** Puts the table of all settings between the two markers of a Markdown text. */
export function withReference(markdown: string): string {
  const begin = markdown.indexOf(referenceBegin)
  const end = markdown.indexOf(referenceEnd)
  if (begin < 0 || end < begin) throw new Error(`the markers ${referenceBegin} and ${referenceEnd} are missing`)
  return `${markdown.slice(0, begin + referenceBegin.length)}\n${referenceTable()}\n${markdown.slice(end)}`
}

/** Returns a Markdown table with one row for each setting. */
export function referenceTable(): string {
  const rows = settingKeys.map(key => {
    const { env, flag, shortFlag, type, secret, summary } = settingOf(key)
    const flags = [shortFlag, flag && flagName(flag)].filter(name => name !== undefined)
    const names = secret ? `\`${env}\`, \`${env}_FILE\`` : `\`${env}\``
    return [
      `\`${key}\``,
      names,
      flags.map(name => `\`${name}\``).join(', '),
      cell(type.allowed),
      cell(defaultText(key)),
      cell(summary)
    ]
  })
  const head = ['key', 'environment', 'flag', 'allowed', 'default', 'meaning']
  return [head, head.map(() => '---'), ...rows].map(row => `| ${row.join(' | ')} |`).join('\n')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}
