import { Option } from 'commander'
import {
  defaultText,
  type Flags,
  namesFile,
  required,
  type SettingKey,
  settingKeys,
  settingOf
} from '../config/settings.js'

// The flags of the settings, which come from the settings table. `commands/index.ts` lists the other flags.

/** Returns new options for commander. Each yes-or-no flag also has a hidden opposite, which can override other sources. */
export function settingOptions(): Option[] {
  return settingKeys.flatMap(key => {
    const { env, flag, shortFlag, type, default: value, summary } = settingOf(key)
    if (flag === undefined) return []
    const note = `${env}, ${value === required ? 'required' : `default: ${defaultText(key)}`}`
    const flags = shortFlag === undefined ? flag : `${shortFlag}, ${flag}`
    const option = new Option(
      flags,
      `${namesFile(flag) ? `${summary} Read the value from this file.` : summary} (${note})`
    ).helpGroup(headingOf(key))
    if (type.isRepeatable) option.argParser((item, earlier: readonly string[] = []) => [...earlier, item])
    if (flag.includes('<')) return [option]
    return [option, new Option(flag.replace('--', '--no-')).hideHelp()]
  })
}

const headings: Readonly<Record<string, string>> = {
  session: 'Session:',
  platform: 'Identity provider:',
  log: 'Log:',
  metrics: 'Metrics:',
  apiProxy: 'API proxy:'
}

function headingOf(key: SettingKey): string {
  return headings[key.split('.', 1).join('')] ?? 'Server:'
}

/** Returns the settings among the options that were given. */
export function settingsAmong(given: Readonly<Record<string, unknown>>): Flags {
  const pairs = settingKeys.flatMap(key => {
    const { flag } = settingOf(key)
    const name = flag && nameOf(flag)
    return name !== undefined && name in given ? [[key, given[name]]] : []
  })
  return Object.fromEntries(pairs) as Flags
}

/** Returns the name under which commander stores the value of a flag. A flag and its opposite have the same name. */
export function nameOf(flag: string): string {
  return new Option(flag).attributeName()
}
