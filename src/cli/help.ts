import { defaultText, type SettingKey, settingKeys, settingOf } from '../config/settings.js'
import type { CommandEntry } from './command.js'
import { commands, defaultCommand } from './commands/index.js'
import { type CommandLineOption, ownOptions, settingOptions } from './options.js'
import { wrap } from './terminal.js'

// The texts of `--help`. The help of the program begins with the parts that most people need. `--help all` has the rest.

type HelpRow = readonly [name: string, text: string]

const name = 'platform-auth-server'

const examples: readonly HelpRow[] = [
  [`npx ${name} --demo --mode dual`, 'Try the server without an account.'],
  [`npx ${name} init`, 'Write the settings files.'],
  [`npx ${name} check`, 'Test the settings with the provider.'],
  [`npx ${name} --mode dual -p 3000`, 'Run the server in dual mode on port 3000.'],
  [`node node_modules/.bin/${name}`, 'Run the server in a container or as a service.']
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

const helpRow: HelpRow = ['-h, --help', 'Print this help.']

const entrypoint =
  `As the entrypoint of a container, start Node itself: node node_modules/.bin/${name}. npx and npm end at SIGTERM without ` +
  'passing it on. The container then kills the server before it has completed its requests.'

const settingFlags = `The flags of the settings, such as --mode and --port, also work here. ${name} --help all lists them.`

/** The help of the program. It shows only the most important settings. */
export function shortHelp(columns: number): string {
  const options = settingOptions().filter(option => option.key && mostUsed.includes(option.key) && !option.hidden)
  const byUse = (option: CommandLineOption) => mostUsed.indexOf(option.key as SettingKey)
  return joined([
    ...beginning(columns),
    section('The settings that most people need:', options.toSorted((a, b) => byUse(a) - byUse(b)).map(rowOf), columns),
    wrap(entrypoint, columns),
    section(
      'More:',
      [
        [`${name} --help all`, 'Print all flags, variables and files.'],
        [`${name} check --help`, 'Print the options of one command, here of check.'],
        [`${name} --version`, 'Print the version.']
      ],
      columns
    )
  ])
}

/** The help with every flag and variable. */
export function fullHelp(columns: number): string {
  const options = [...settingOptions(), ...ownOptions].filter(({ hidden = false }) => !hidden)
  const groups = [...new Set(options.map(({ group }) => group))]
  const width = Math.max(...options.map(option => rowOf(option)[0].length))
  const variables = settingKeys
    .filter(key => settingOf(key).flag === undefined)
    .map((key): HelpRow => [settingOf(key).env, `${settingOf(key).summary} (default: ${defaultText(key)})`])
  const paragraphs = [
    'Every setting can also be written in a settings file in the working directory, such as ' +
      `${name}.config.yaml or .${name}rc.json. Variables can be written in .env. ` +
      'A secret can be read from a file whose path is in <variable>_FILE. ' +
      'Flags override variables, variables override the settings file, and the file overrides the defaults.',
    'NO_COLOR=1 switches colours off, and FORCE_COLOR=1 switches them on.',
    'Exit codes: 0 means success, 1 a failure while running, 2 invalid settings or an invalid command line.',
    entrypoint
  ]
  const general: readonly HelpRow[] = [
    ['-h, --help', `Print the short help. With "all", print this text. With a command, print its help.`],
    ['-V, --version', 'Print the version.']
  ]
  return joined([
    ...beginning(columns),
    section('Options:', general, columns, width),
    ...groups.map(group => {
      const rows = options.filter(option => option.group === group).map(rowOf)
      return section(group, rows, columns, width)
    }),
    section('Settings without a flag, by their variables:', variables, columns),
    ...paragraphs.map(paragraph => wrap(paragraph, columns))
  ])
}

/** The help of a command. It shows only the command's own options. */
export function commandHelp(
  { name: command, summary, actions = [], options = [], takesSettings }: CommandEntry,
  columns: number
): string {
  const shared = ownOptions.filter(option => option.commands.includes(command))
  const rows = [...options.map((option): HelpRow => [option.flags, option.summary]), ...shared.map(rowOf), helpRow]
  return joined([
    `Usage: ${name} ${command}${actions.map(action => ` [${action.name}]`).join('')} [options]`,
    wrap(summary, columns),
    ...(actions.length > 0
      ? [
          section(
            'Actions:',
            actions.map(({ name, summary }): HelpRow => [name, summary]),
            columns
          )
        ]
      : []),
    section('Options:', rows, columns),
    ...(takesSettings ? [wrap(settingFlags, columns)] : []),
    ...(command === defaultCommand.name ? [wrap(entrypoint, columns)] : [])
  ])
}

/** The help of the command `help`. */
export function helpOfHelp(columns: number): string {
  return joined([`Usage: ${name} help [command]`, helpSummary, section('Options:', [helpRow], columns)])
}

const helpSummary = 'Print the help of a command, or with "all" of everything.'

function beginning(columns: number): string[] {
  const summaries = commands.map((command): HelpRow => [command.name, command.summary])
  return [
    `Usage: ${name} [command] [options]`,
    wrap(
      'Login and token server with the OAuth authorization code flow, encrypted sessions and token refresh.',
      columns
    ),
    section('Commands:', [...summaries, ['help [command]', helpSummary]], columns),
    section('Examples:', examples, columns)
  ]
}

function rowOf({ short, flags, summary, note }: CommandLineOption): HelpRow {
  return [short === undefined ? flags : `${short}, ${flags}`, note === undefined ? summary : `${summary} (${note})`]
}

/** Formats rows in two columns below a title. The second column is wrapped. */
function section(title: string, rows: readonly HelpRow[], columns: number, least = 0): string {
  const width = Math.max(least, ...rows.map(([name]) => name.length))
  return [title, ...rows.map(([name, text]) => `  ${name.padEnd(width)}  ${wrap(text, columns, width + 4)}`)].join('\n')
}

function joined(parts: readonly string[]): string {
  return `${parts.join('\n\n')}\n`
}
