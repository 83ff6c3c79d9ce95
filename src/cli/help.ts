import type { Help, Option } from 'commander'
import { defaultText, type SettingKey, settingKeys, settingOf } from '../config/settings.js'
import type { CommandEntry } from './command.js'
import type { CommandLineOption } from './options.js'

// The texts of `--help` that commander does not write. `--help` shows the most used settings, and `--help all` shows
// all settings.

const name = 'platform-auth-server'

export const description =
  'Login and token server with the OAuth authorization code flow, encrypted sessions and token refresh.'

const examples: readonly HelpRow[] = [
  [`npx ${name} --demo --mode dual`, 'Try the server without an account.'],
  [`npx ${name} init`, 'Write the settings files.'],
  [`npx ${name} check`, 'Test the settings with the provider.'],
  [`npx ${name} --mode dual -p 3000`, 'Run the server in dual mode on port 3000.'],
  [`node node_modules/.bin/${name}`, 'Run the server in a container or as a service.']
]

const furtherHelp: readonly HelpRow[] = [
  [`${name} --help all`, 'Print all flags, variables and files.'],
  [`${name} check --help`, 'Print the options of one command, here of check.'],
  [`${name} --version`, 'Print the version.']
]

const mostUsed: readonly SettingKey[] = [
  'mode',
  'port',
  'wwwroot',
  'session.secret',
  'platform.clientId',
  'platform.clientSecret',
  'platform.callbackUrl',
  'proxy.routes',
  'redisUrl',
  'log.level'
]

const entrypoint =
  `As the entrypoint of a container, start Node itself: node node_modules/.bin/${name}. npx and npm end at SIGTERM without ` +
  'passing it on. The container then kills the server before it has completed its requests.'

const settingFlags = `The flags of the settings, such as --mode and --port, also work here. ${name} --help all lists them.`

const sourcesAndExitCodes = [
  'Every setting can also be written in a settings file in the working directory, such as ' +
    `${name}.config.yaml or .${name}rc.json. Variables can be written in .env. ` +
    'A secret can be read from a file whose path is in <variable>_FILE. ' +
    'Flags override variables, variables override the settings file, and the file overrides the defaults.',
  'NO_COLOR=1 switches colours off, and FORCE_COLOR=1 switches them on.',
  'Exit codes: 0 means success, 1 a failure while running, 2 invalid settings or an invalid command line.'
]

type HelpRow = readonly [term: string, text: string]

/** Adds the heading and the description to an option of commander. */
export function describe(option: Option, declared: CommandLineOption, topic: HelpTopic): Option {
  const { key, summary, note, group, hidden = false } = declared
  const isMostUsed = key !== undefined && mostUsed.includes(key)
  option.description = note === undefined ? summary : `${summary} (${note})`
  if (topic === 'short') return option.helpGroup('Most used settings:').hideHelp(hidden || !isMostUsed)
  return option.helpGroup(topic === 'all' && group !== undefined ? group : 'Options:').hideHelp(hidden)
}

/** `short` and `all` are the help of the program, and `command` is the help of one command. */
export type HelpTopic = 'short' | 'all' | 'command'

/** Returns the text after the help that commander writes. */
export function textAfterHelp(helper: Help, topic: 'short' | 'all'): string {
  if (topic === 'short') {
    return [
      section('Examples:', examples, helper),
      wrapped(entrypoint, helper),
      section('More:', furtherHelp, helper)
    ].join('\n\n')
  }
  const variables = settingKeys
    .filter(key => settingOf(key).flag === undefined)
    .map((key): HelpRow => [settingOf(key).env, `${settingOf(key).summary} (default: ${defaultText(key)})`])
  return [
    section('Examples:', examples, helper),
    section('Settings without a flag, by their variables:', variables, helper),
    ...[...sourcesAndExitCodes, entrypoint].map(text => wrapped(text, helper))
  ].join('\n\n')
}

/** Returns the text after the help of a command. */
export function textAfterCommandHelp({ name, takesSettings }: CommandEntry, helper: Help): string {
  const texts = [...(takesSettings ? [settingFlags] : []), ...(name === 'start' ? [entrypoint] : [])]
  return texts.map(text => wrapped(text, helper)).join('\n\n')
}

function section(title: string, rows: readonly HelpRow[], helper: Help): string {
  const width = Math.max(...rows.map(([term]) => term.length))
  return [title, ...rows.map(([term, text]) => helper.formatItem(term, width, text, helper))].join('\n')
}

function wrapped(text: string, helper: Help): string {
  return helper.boxWrap(text, helper.helpWidth ?? 80)
}
