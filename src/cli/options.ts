import { namesFile } from '../config/flags.js'
import { defaultText, required, type SettingKey, settingKeys, settingOf } from '../config/settings.js'

// The flags of the command line: one for every row of the settings table that has one, and the few that are no
// settings.

export interface CommandLineOption {
  /** As commander writes it: `--port <port>`. */
  readonly flags: string
  /** The heading in `--help`. */
  readonly group: string
  readonly summary: string
  /** What else to know in `--help`: the variable, the default. */
  readonly note?: string
  /** May be given more than once. */
  readonly isRepeatable?: boolean
  /** The setting it gives. */
  readonly key?: SettingKey
  /** Left out of `--help`. */
  readonly hidden?: boolean
}

export const ownOptions: readonly CommandLineOption[] = [
  {
    flags: '--config <file>',
    group: 'Settings file:',
    summary: 'Read exactly this file.',
    note: 'default: looked for, see below'
  },
  {
    flags: '--demo',
    group: 'Trying it out:',
    summary: 'Run with a built-in identity provider; nothing else is needed.'
  },
  { flags: '--demo-port <port>', group: 'Trying it out:', summary: 'Its port.', note: 'default any free one' },
  {
    flags: '--demo-token-lifetime <seconds>',
    group: 'Trying it out:',
    summary: 'How long its access tokens live; a short life lets a refresh be watched.',
    note: 'default 3599'
  }
]

export function settingOptions(): CommandLineOption[] {
  return settingKeys.flatMap(key => {
    const { env, flag, type, default: value } = settingOf(key)
    if (flag === undefined) return []
    const summary = summaryOf(flag, settingOf(key).summary)
    const note = `${env}, ${value === required ? 'required' : `default ${defaultText(key)}`}`
    const { isRepeatable = false } = type
    const option = { flags: flag, group: groupOf(key), summary, note, isRepeatable, key }
    const opposite = oppositeOf(flag)
    return opposite === undefined ? [option] : [option, { ...option, flags: opposite, hidden: true }]
  })
}

function summaryOf(flag: string, summary: string): string {
  if (namesFile(flag)) return summary.replace(/\.$/, ', from a file.')
  return flag.startsWith('--no-') ? `Switch off: ${summary.charAt(0).toLowerCase()}${summary.slice(1)}` : summary
}

/** A flag without a value says yes or no; the other answer is there to outrank a variable or a file. */
function oppositeOf(flag: string): string | undefined {
  if (flag.includes('<')) return undefined
  return flag.startsWith('--no-') ? flag.replace('--no-', '--') : flag.replace('--', '--no-')
}

const headings: Readonly<Record<string, string>> = {
  session: 'Session:',
  platform: 'Identity provider:',
  log: 'Log:',
  metrics: 'Metrics:',
  proxy: 'API proxy:'
}

function groupOf(key: SettingKey): string {
  return headings[key.split('.', 1).join('')] ?? 'Server:'
}

/** Settings that only a variable or a file gives. */
export function settingsWithoutFlag(): SettingKey[] {
  return settingKeys.filter(key => settingOf(key).flag === undefined)
}
