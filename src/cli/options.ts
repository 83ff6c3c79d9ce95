import { defaultText, namesFile, required, type SettingKey, settingKeys, settingOf } from '../config/settings.js'

// The flags of the command line. Most of them come from the settings table. The others are listed in this file.

export interface CommandLineOption {
  /** The declaration in the syntax of commander, such as `--port <port>`. */
  readonly flags: string
  /** The short form, such as `-p`. */
  readonly short?: string
  /** The heading above the flag in `--help all`. */
  readonly group?: string
  readonly summary: string
  /** A remark in `--help`, such as the variable and the default. */
  readonly note?: string
  /** True if the flag may be given more than once. */
  readonly isRepeatable?: boolean
  /** The setting that the flag sets. */
  readonly key?: SettingKey
  /** True if no help lists the flag. */
  readonly hidden?: boolean
}

/** A flag that is not a setting. */
interface OwnOption extends CommandLineOption {
  /** The names of the commands whose help lists the flag. */
  readonly commands: readonly string[]
}

export const ownOptions: readonly OwnOption[] = [
  {
    flags: '--config <file>',
    group: 'Settings file:',
    summary: 'Read this settings file.',
    note: 'default: the first file found, such as platform-auth-server.config.yaml',
    commands: ['start', 'check', 'config', 'sessions']
  },
  {
    flags: '--watch',
    group: 'Server:',
    summary: 'Restart the server when the module of --extend, or a module that it imports, changes.',
    commands: ['start']
  },
  {
    flags: '--demo',
    group: 'Trying it out:',
    summary: 'Run with a built-in identity provider. No other settings are needed.',
    commands: ['start', 'check']
  },
  {
    flags: '--demo-port <port>',
    group: 'Trying it out:',
    summary: 'Listen on this port with the built-in provider.',
    note: 'default: any free port',
    commands: ['start', 'check']
  },
  {
    flags: '--demo-token-lifetime <seconds>',
    group: 'Trying it out:',
    summary:
      'Let the access tokens of the built-in provider expire after this time. With a short time, you soon see a refresh.',
    note: 'default: 3599',
    commands: ['start']
  }
]

/** Returns the flags of the settings table. */
export function settingOptions(): CommandLineOption[] {
  return settingKeys.flatMap(key => {
    const { env, flag, shortFlag, type, default: value } = settingOf(key)
    if (flag === undefined) return []
    const summary = summaryOf(flag, settingOf(key).summary)
    const note = `${env}, ${value === required ? 'required' : `default: ${defaultText(key)}`}`
    const { isRepeatable = false } = type
    const short = shortFlag && { short: shortFlag }
    const option = { flags: flag, ...short, group: groupOf(key), summary, note, isRepeatable, key }
    const opposite = oppositeOf(flag)
    return opposite === undefined ? [option] : [option, { ...option, flags: opposite, hidden: true }]
  })
}

function summaryOf(flag: string, summary: string): string {
  if (namesFile(flag)) return `${summary} Read the value from this file.`
  return flag.startsWith('--no-') ? `Do not ${summary.charAt(0).toLowerCase()}${summary.slice(1)}` : summary
}

/**
 * Returns the flag with the opposite meaning, for example `--no-trust-proxy` for `--trust-proxy`. The opposite flag can
 * override a variable or a file. Returns undefined for a flag that takes a value.
 */
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
