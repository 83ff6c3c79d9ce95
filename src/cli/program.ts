import { Command as Commander, Option } from 'commander'
import type { Flags } from '../config/sources.js'
import { version } from '../support/version.js'
import type { CommandEntry, Invocation } from './command.js'
import { commands, defaultCommand } from './commands/index.js'
import { UsageError, unknownWord } from './errors.js'
import { describe, description, type HelpTopic, textAfterCommandHelp, textAfterHelp } from './help.js'
import { type CommandLineOption, ownOptions, settingOptions } from './options.js'
import type { Terminal } from './terminal.js'

const MAX_HELP_COLUMNS = 120

type Run = (command: CommandEntry, invocation: Invocation) => Promise<void>

/** Parses the command line. Calls `run` with the command, which is the default command if none was given. */
export async function parseCommandLine(terminal: Terminal, run: Run): Promise<void> {
  const word = wordAfterHelp(terminal.args)
  // For `--help check`, Commander would print the help of the program. `check --help` prints the help of the command.
  const args = word !== undefined && commandNames.includes(word) ? [word, '--help'] : terminal.args
  await createProgram(terminal, word, run).parseAsync(args, { from: 'user' })
}

/** Declares the command line for commander. */
function createProgram(terminal: Terminal, word: string | undefined, run: Run): Commander {
  const { stdout } = terminal
  const options = [...settingOptions(), ...ownOptions]
  const topic = word === 'all' ? 'all' : 'short'
  const program: Commander = new Commander('platform-auth-server')
    .description(description)
    .version(version(), '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Print this help. With "all" after it, print all flags, variables and files.')
    // Commander's suggestion would repeat the whole word, but the part after an equals sign may be a secret. `main`
    // makes the suggestion instead.
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({
      writeOut: text => void stdout.write(text),
      // Errors are thrown, and `main` reports them.
      writeErr: () => {}
    })
    .configureHelp({
      helpWidth: Math.min(stdout.columns ?? 100, MAX_HELP_COLUMNS),
      minWidthToWrap: 20,
      subcommandTerm: command =>
        [command.name(), ...command.registeredArguments.map(argument => `[${argument.name()}]`)].join(' ')
    })
    .allowExcessArguments()
    // For an unknown command, the help command of commander would print the full help as an error, so it is replaced
    // below.
    .helpCommand(false)
    .addHelpText('before', () => {
      if (word !== undefined && word !== 'all') throw unknownWord('command', word, commandNames)
      return ''
    })
    .addHelpText('after', () => `\n${textAfterHelp(program.createHelp(), topic)}`)
  for (const option of options) program.addOption(toCommander(option, topic))
  rejectContradictions(program)

  const invoke: Invoke = (entry, givenToCommand, hasAction) => {
    const { config, ...given } = givenOptions(program)
    const configFile = typeof config === 'string' ? config : undefined
    const flags = settingsAmong(given, options)
    return run(entry, { terminal, flags, configFile, hasAction, options: { ...given, ...givenToCommand } })
  }
  program.action(async (_options, { args: [word] }: Commander) => {
    if (word !== undefined) throw isPath(word) ? missingFlag(word) : unknownWord('command', word, commandNames)
    await invoke(defaultCommand, {}, false)
  })
  for (const entry of commands) addCommand(program, entry, invoke)
  program
    .command('help [command]')
    .description('Print the help of a command. With "all", print all flags, variables and files.')
    .helpOption('-h, --help', 'Print this help.')
    .allowExcessArguments(false)
    .action(async (topic?: string) => {
      await parseCommandLine({ ...terminal, args: ['--help', ...(topic === undefined ? [] : [topic])] }, run)
    })
  return program
}

type Invoke = (entry: CommandEntry, given: Record<string, unknown>, hasAction: boolean) => Promise<void>

function addCommand(program: Commander, entry: CommandEntry, invoke: Invoke): void {
  const { name, summary, action, options = [] } = entry
  const command = program
    .command(name)
    .description(summary)
    .helpOption('-h, --help', 'Print this help.')
    .allowExcessArguments()
    .addHelpText('after', () => {
      const text = textAfterCommandHelp(entry, command.createHelp())
      return text && `\n${text}`
    })
  if (action) command.argument(`[${action.name}]`, action.summary)
  const shared = ownOptions.filter(({ commands }) => commands.includes(name))
  for (const option of [...options, ...shared]) command.addOption(toCommander(option, 'command'))
  rejectContradictions(command)
  command.action(() => {
    const hasAction = action !== undefined && command.args[0] === action.name
    rejectArguments(entry, command.args.slice(hasAction ? 1 : 0))
    return invoke(entry, command.opts(), hasAction)
  })
}

const commandNames: readonly string[] = [...commands.map(command => command.name), 'help']

/** Returns the word after `--help` or `-h`, if there is one. */
function wordAfterHelp(args: readonly string[]): string | undefined {
  const index = args.findIndex(arg => arg === '--help' || arg === '-h')
  const word = index === -1 ? undefined : args[index + 1]
  return word?.startsWith('-') ? undefined : word
}

/** @throws {UsageError} if the command has arguments, because all commands accept only flags */
function rejectArguments({ name, action }: CommandEntry, [excess]: readonly string[]): void {
  if (excess === undefined) return
  if (name === defaultCommand.name && isPath(excess)) throw missingFlag(excess)
  // The part after an equals sign may be a secret, so the message does not contain it.
  const [shown = ''] = excess.split('=', 1)
  throw new UsageError(`${name} accepts only flags${action ? ` and the word ${action.name}` : ''}. Remove ${shown}.`)
}

function isPath(word: string): boolean {
  return /^[\w.~/-]*\/[\w.~/-]*$|^\.{1,2}$/.test(word)
}

function missingFlag(path: string): UsageError {
  return new UsageError(`To serve a folder of pages, use the flag --wwwroot: --wwwroot ${path}`)
}

function toCommander(declared: CommandLineOption, topic: HelpTopic): Option {
  const { short, flags, isRepeatable } = declared
  const option = describe(new Option(short === undefined ? flags : `${short}, ${flags}`), declared, topic)
  return isRepeatable ? option.argParser((value, earlier: readonly string[] = []) => [...earlier, value]) : option
}

/**
 * Rejects a flag that is given twice with different values, such as one in a script of package.json and another one after
 * `npm start --`. Commander would use the last value and ignore the other one.
 */
function rejectContradictions(command: Commander): void {
  const given = new Map<string, { readonly flag: string; readonly value: unknown }>()
  for (const option of command.options.filter(({ parseArg }) => !parseArg)) {
    const { negate, long: flag = '' } = option
    command.on(`option:${option.name()}`, (text: string | null) => {
      const value = text ?? !negate
      const earlier = given.get(option.attributeName())
      given.set(option.attributeName(), { flag, value })
      if (!earlier || earlier.value === value) return
      // The values may be secret, so the message does not contain them.
      throw new UsageError(
        earlier.flag === flag
          ? `${flag} is given twice with different values. Remove one of them.`
          : `${earlier.flag} and ${flag} contradict each other. Remove one of them.`
      )
    })
  }
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
