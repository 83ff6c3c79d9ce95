import { Command as Commander, Option } from 'commander'
import type { Flags } from '../config/flags.js'
import { defaultText, settingOf } from '../config/settings.js'
import type { CommandEntry, Invocation } from './command.js'
import { commands, defaultCommand } from './commands/index.js'
import { UsageError } from './errors.js'
import { wrap } from './layout.js'
import { type CommandLineOption, ownOptions, settingOptions, settingsWithoutFlag } from './options.js'
import type { Terminal } from './terminal.js'
import { unknownWord } from './unknown-word.js'
import { version } from './version.js'

/** Declares the command line for commander. `run` is called with the typed command, or with the default command. */
export function createProgram(
  terminal: Terminal,
  run: (command: CommandEntry, invocation: Invocation) => Promise<void>
): Commander {
  const options = [...settingOptions(), ...ownOptions]
  const program = new Commander('platform-auth-server')
    .description('Login and token server with the OAuth authorization code flow, encrypted sessions and token refresh.')
    .version(version(), '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help.')
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({
      writeOut: text => void terminal.stdout.write(text),
      // Errors are thrown, and `main` reports them.
      writeErr: () => {},
      getOutHelpWidth: () => helpColumns(terminal)
    })
    .allowExcessArguments()
    // The help command of commander answers an unknown command by printing the full help as an error.
    .helpCommand(false)
    .addHelpText('after', () => epilogue(helpColumns(terminal)))
  for (const option of options) program.addOption(toCommander(option))

  const invoke = (entry: CommandEntry, own: Record<string, unknown>) => {
    const { config, ...given } = givenOptions(program)
    const configFile = typeof config === 'string' ? config : undefined
    const flags = settingsAmong(given, options)
    return run(entry, { terminal, flags, configFile, options: { ...given, ...own } })
  }
  const names = [...commands.map(command => command.name), 'help']
  program.action(async (_options, { args: [word] }: Commander) => {
    if (word !== undefined) throw isPath(word) ? missingFlag(word) : unknownWord('command', word, names)
    await invoke(defaultCommand, {})
  })
  for (const entry of commands) {
    const command = program.command(entry.name).description(entry.summary).allowExcessArguments()
    if (entry.takesSettings) command.configureHelp({ showGlobalOptions: true })
    for (const option of entry.options ?? []) command.option(option.flags, option.summary)
    command.action(() => {
      rejectArguments(entry, command.args)
      return invoke(entry, command.opts())
    })
  }
  const help = program.command('help [command]').description('Print the help of a command.').allowExcessArguments(false)
  help.action((word?: string) => {
    const found = word === undefined ? program : program.commands.find(command => command.name() === word)
    if (!found) throw unknownWord('command', word ?? '', names)
    found.outputHelp()
  })
  return program
}

/** @throws {UsageError} if the command has arguments, because all commands accept only flags */
function rejectArguments({ name }: CommandEntry, [excess]: readonly string[]): void {
  if (excess === undefined) return
  if (name === defaultCommand.name && isPath(excess)) throw missingFlag(excess)
  // The part after an equals sign may be a secret, so the message does not contain it.
  const [shown = ''] = excess.split('=', 1)
  throw new UsageError(`${name} accepts only flags. Remove ${shown}.`)
}

function isPath(word: string): boolean {
  return /^[\w.~/-]*\/[\w.~/-]*$|^\.{1,2}$/.test(word)
}

function missingFlag(path: string): UsageError {
  return new UsageError(`To serve a folder of pages, use the flag --wwwroot: --wwwroot ${path}`)
}

function toCommander({ flags, summary, note, group, hidden, isRepeatable }: CommandLineOption): Option {
  const option = new Option(flags, note ? `${summary} (${note})` : summary).helpGroup(group)
  if (isRepeatable) option.argParser((value, earlier: readonly string[] = []) => [...earlier, value])
  return hidden ? option.hideHelp() : option
}

/** Returns the options that were given, without the defaults that commander adds for `--no-` flags. */
function givenOptions(program: Commander): Record<string, unknown> {
  const all = Object.entries(program.opts())
  return Object.fromEntries(all.filter(([name]) => program.getOptionValueSource(name) === 'cli'))
}

function settingsAmong(given: Record<string, unknown>, options: readonly CommandLineOption[]): Flags {
  const pairs = options.flatMap(({ key, flags }) => {
    const name = new Option(flags).attributeName()
    return key !== undefined && name in given ? [[key, given[name]]] : []
  })
  return Object.fromEntries(pairs) as Flags
}

const examples: readonly (readonly [command: string, purpose: string])[] = [
  ['npx platform-auth-server --demo --mode dual', 'try it without an account'],
  ['npx platform-auth-server init', 'write the settings files'],
  ['npx platform-auth-server check', 'test the settings with the provider']
]

function helpColumns({ stdout }: Terminal): number {
  return Math.min(stdout.columns ?? 100, 120)
}

function epilogue(columns: number): string {
  const variables = settingsWithoutFlag().map(
    key => [settingOf(key).env, `${settingOf(key).summary} (default: ${defaultText(key)})`] as const
  )
  const paragraphs = [
    'Every setting can also be written in a settings file in the working directory, such as ' +
      'platform-auth-server.config.yaml or .platform-auth-serverrc.json. Variables can be written in .env. ' +
      'A secret can be read from a file whose path is in <variable>_FILE. ' +
      'Flags override variables, variables override the settings file, and the file overrides the defaults.',
    'Exit codes: 0 means success, 1 a failure while running, 2 invalid settings or an invalid command line.'
  ]
  return [
    '',
    'Settings without a flag, by their variables:',
    ...list(variables, columns),
    '',
    ...paragraphs.flatMap(paragraph => [wrap(paragraph, columns), '']),
    'Examples:',
    ...list(examples, columns)
  ].join('\n')
}

/** Formats rows in two columns. The second column is wrapped. */
function list(rows: readonly (readonly [name: string, text: string])[], columns: number): string[] {
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${wrap(text, columns, width + 4)}`)
}
