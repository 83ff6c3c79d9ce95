import type { Help } from 'commander'
import { defaultText, type SettingKey, settingKeys, settingOf } from '../config/settings.js'
import type { CommandEntry } from './terminal/command.js'

// The texts of `--help` that commander does not generate. `--help` shows only the most used settings.

const name = 'platform-auth-server'

export const description =
  'Login and token server with the OAuth authorization code flow, encrypted sessions and token refresh.'

const examples: readonly HelpRow[] = [
  [`npx ${name} --demo --mode dual`, 'Try the server without an account.'],
  [`npx ${name} init`, 'Write the settings files.'],
  [`npx ${name} check`, 'Test the settings with the provider.'],
  [`npx ${name} --mode dual -p 3000`, 'Run the server in dual mode on port 3000.'],
  [`npx ${name} config`, 'Print the settings and their sources.']
]

const furtherHelp: readonly HelpRow[] = [
  [`${name} --help all`, 'Print all flags, variables and files.'],
  [`${name} check --help`, 'Print the options of one command, for example check.'],
  [`${name} --version`, 'Print the version.']
]

/** The settings that `--help` shows. */
export const mostUsed: readonly SettingKey[] = [
  'mode',
  'port',
  'wwwroot',
  'session.secret',
  'platform.clientId',
  'platform.clientSecret',
  'platform.callbackUrl',
  'apiProxy.rules',
  'redis.url',
  'log.level'
]

const entrypoint =
  `As the entrypoint of a container, start Node itself: node node_modules/${name}/bin/${name}.js. npx and npm end at SIGTERM without ` +
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

/** Returns the text after commander's help: `short` for `--help`, and `all` for `--help all`. */
export function textAfterHelp(helper: Help, topic: 'short' | 'all'): string {
  if (topic === 'short') {
    const sections = [helpSection('Examples:', examples, helper), wrapped(entrypoint, helper)]
    return [...sections, helpSection('More:', furtherHelp, helper)].join('\n\n')
  }
  const variables = settingKeys
    .filter(key => settingOf(key).flag === undefined)
    .map((key): HelpRow => [settingOf(key).env, `${settingOf(key).summary} (default: ${defaultText(key)})`])
  return [
    helpSection('Examples:', examples, helper),
    helpSection('Settings without a flag, by their variables:', variables, helper),
    ...[...sourcesAndExitCodes, entrypoint].map(text => wrapped(text, helper))
  ].join('\n\n')
}

/** Returns the text after commander's help for one command. The text may be empty. */
export function textAfterCommandHelp({ name, ignoresSettings }: CommandEntry, helper: Help): string {
  const texts = [...(ignoresSettings ? [] : [settingFlags]), ...(name === 'start' ? [entrypoint] : [])]
  return texts.map(text => `\n${wrapped(text, helper)}`).join('\n')
}

function helpSection(title: string, rows: readonly HelpRow[], helper: Help): string {
  const width = Math.max(...rows.map(([term]) => term.length))
  return [title, ...rows.map(([term, text]) => helper.formatItem(term, width, text, helper))].join('\n')
}

function wrapped(text: string, helper: Help): string {
  return helper.boxWrap(text, helper.helpWidth ?? 80)
}
