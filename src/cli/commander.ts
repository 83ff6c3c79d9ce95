import { Argument, Command as Commander, CommanderError, Option } from 'commander'
import { version } from '../base/package.js'
import { flagName, settingOf } from '../config/settings.js'
import { commands, defaultCommand } from './commands/index.js'
import { description, mostUsed, textAfterCommandHelp, textAfterHelp } from './help.js'
import { nameOf, settingOptions, settingsAmong } from './options.js'
import type { CommandEntry, CommandFlag, Invocation } from './terminal/command.js'
import { UsageError } from './terminal/expected-errors.js'
import type { Terminal } from './terminal/terminal.js'

const MAX_HELP_COLUMNS = 120

type Run = (command: CommandEntry, invocation: Invocation) => Promise<void>

/**
 * Parses the command line. Calls `run` with the command, which is the default command if none was given. Prints the help
 * or the version instead if the command line asks for it.
 * @throws UsageError if the command line is invalid; also the errors of `run`
 */
export async function parseCommandLine(terminal: Terminal, run: Run): Promise<void> {
  const [first = '', ...others] = terminal.args
  // For `--help check`, Commander would print the help of the program.
  const args = ['help', '--help', '-h'].includes(first) ? [...others, '--help'] : terminal.args
  try {
    await createProgram(terminal, run).parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // After the help or the version, commander throws an error with exit code 0.
    if (error.exitCode !== 0) throw usageErrorOf(error)
  }
}

/** Declares the command line for commander. */
function createProgram(terminal: Terminal, run: Run): Commander {
  const { args, stdout } = terminal
  const topic = args.includes('all') ? 'all' : 'short'
  const program: Commander = new Commander('platform-auth-server')
    .description(description)
    .version(version(), '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help. With "all" after it, print all flags, variables and files.')
    .exitOverride()
    .configureOutput({
      writeOut: text => void stdout.write(text),
      // Errors are thrown, and `main` reports them.
      writeErr: () => {}
    })
    .configureHelp({
      helpWidth: Math.min(stdout.columns ?? 100, MAX_HELP_COLUMNS),
      minWidthToWrap: 20
    })
    .allowExcessArguments()
    // This command is only listed. It never runs, because `parseCommandLine` replaces it.
    .helpCommand('help [command]', 'Print the help of a command. With "all", print all flags, variables and files.')
    .addHelpText('before', () => {
      const word = program.args.find(arg => !arg.startsWith('-'))
      if (word !== undefined && word !== 'all' && !commandNames.includes(word)) throw unknownCommand(word)
      return ''
    })
    .addHelpText('after', () => `\n${textAfterHelp(program.createHelp(), topic)}`)
  const shown = new Set(mostUsed.map(key => nameOf(settingOf(key).flag ?? '')))
  const ofDefault = defaultCommand.options.map(({ flags, summary, group = '' }) =>
    new Option(flags, summary).helpGroup(group)
  )
  for (const option of [...settingOptions(), ...ofDefault]) {
    program.addOption(option)
    if (topic === 'short') option.helpGroup('Most used settings:').hideHelp(!shown.has(option.attributeName()))
  }

  const invoke = (entry: CommandEntry, command: Commander, hasAction: boolean) =>
    run(entry, { terminal, flags: settingsAmong(program.opts()), hasAction, options: command.optsWithGlobals() })
  program.action(async (_options, { args: [word] }: Commander) => {
    if (word !== undefined) throw unknownCommand(word)
    await invoke(defaultCommand, program, false)
  })
  for (const entry of commands) {
    const command = addCommand(program, entry)
    command.action(() => {
      rejectIgnored(program, entry)
      return invoke(entry, command, command.args.length > 0)
    })
  }
  return program
}

function addCommand(program: Commander, entry: CommandEntry): Commander {
  const { name, summary, action, options } = entry
  const command: Commander = program
    .command(name)
    .description(summary)
    .helpOption('-h, --help', 'Print this help.')
    .allowExcessArguments(false)
    .addHelpText('after', () => textAfterCommandHelp(entry, command.createHelp()))
  if (action) command.addArgument(new Argument(`[${action.name}]`, action.summary).choices([action.name]))
  for (const { flags, summary } of options) command.option(flags, summary)
  return command
}

/** Rejects a flag of the default command that this command would ignore. Such a flag can be given before or after any command. */
function rejectIgnored(program: Commander, { options }: CommandEntry): void {
  const given = defaultCommand.options.filter(({ flags }) => program.getOptionValue(nameOf(flags)) !== undefined)
  const [ignored] = given.filter(option => !options.includes(option))
  if (ignored) throw foreignFlag(long(ignored))
}

const commandNames: readonly string[] = [...commands.map(command => command.name), 'help']

function usageErrorOf({ code, message }: CommanderError): UsageError {
  const [, word = ''] = /'(?:-\w, )?(.+)'/s.exec(message) ?? []
  // The messages of commander contain the whole word, which may be a secret, and the declaration of an option.
  if (code === 'commander.optionMissingArgument') return new UsageError(`${flagName(word)} needs a value: ${word}`)
  if (code !== 'commander.unknownOption')
    return new UsageError(message.replace(/^error: /, '').replace(/value '.*' is/s, 'value is'))
  if (ownersOf(word).length > 0) return foreignFlag(word)
  const [name = ''] = word.split('=', 1)
  const known = [...settingOptions().map(({ long }) => long), ...commands.flatMap(({ options }) => options.map(long))]
  if (word !== name && known.includes(name)) return new UsageError(`${name} takes no value.`)
  const [suggestion = '--help all lists all of them.'] = /Did you mean [^\n)]+/.exec(message) ?? []
  return new UsageError(`There is no flag ${shownWord(name)}. ${suggestion}`)
}

function long({ flags }: CommandFlag): string {
  return flagName(flags)
}

/** Returns the names of the commands that have a flag. */
function ownersOf(flag: string): readonly string[] {
  return commands.filter(({ options }) => options.map(long).includes(flag)).map(({ name }) => name)
}

/** Returns the error for a flag that only other commands have. */
function foreignFlag(flag: string): UsageError {
  return new UsageError(`${flag} is an option of ${ownersOf(flag).join(' or ')} only.`)
}

function unknownCommand(word: string): UsageError {
  return new UsageError(`There is no command ${shownWord(word)}. The commands are ${commandNames.join(', ')}.`)
}

/** A secret may have been given in the place of a flag or a command, so only words are shown. */
function shownWord(word: string): string {
  return /^[a-z-]{1,40}$/i.test(word) ? word : 'of this name'
}
