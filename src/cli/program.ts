import { Command as Commander, Option } from 'commander'
import type { Flags } from '../config/sources.js'
import { version } from '../support/version.js'
import type { CommandEntry, Invocation } from './command.js'
import { commands, defaultCommand } from './commands/index.js'
import { UsageError, unknownWord } from './errors.js'
import { commandHelp, fullHelp, helpOfHelp, shortHelp } from './help.js'
import { type CommandLineOption, ownOptions, settingOptions } from './options.js'
import type { Terminal } from './terminal.js'

/** Declares the command line for commander. `run` is called with the typed command, or with the default command. */
export function createProgram(
  terminal: Terminal,
  run: (command: CommandEntry, invocation: Invocation) => Promise<void>
): Commander {
  const options = [...settingOptions(), ...ownOptions]
  const program = new Commander('platform-auth-server')
    .version(version(), '-V, --version')
    .showSuggestionAfterError(false)
    .exitOverride()
    .configureOutput({
      writeOut: text => void terminal.stdout.write(text),
      // Errors are thrown, and `main` reports them.
      writeErr: () => {}
    })
    .configureHelp({ formatHelp: () => helpOn(wordAfterHelp(terminal.args), terminal) })
    .allowExcessArguments()
    // The help command of commander answers an unknown command by printing the full help as an error.
    .helpCommand(false)
  for (const option of options) program.addOption(toCommander(option))
  rejectContradictions(program)

  const invoke = (entry: CommandEntry, own: Record<string, unknown>, action?: string) => {
    const { config, ...given } = givenOptions(program)
    const configFile = typeof config === 'string' ? config : undefined
    const flags = settingsAmong(given, options)
    return run(entry, { terminal, flags, configFile, action, options: { ...given, ...own } })
  }
  program.action(async (_options, { args: [word] }: Commander) => {
    if (word !== undefined) throw isPath(word) ? missingFlag(word) : unknownWord('command', word, commandNames)
    await invoke(defaultCommand, {})
  })
  for (const entry of commands) {
    const command = program.command(entry.name).allowExcessArguments()
    command.configureHelp({ formatHelp: () => helpOn(entry.name, terminal) })
    for (const option of entry.options ?? []) command.option(option.flags)
    rejectContradictions(command)
    command.action(() => {
      const [action, ...others] = actionFirst(entry, command.args)
      rejectArguments(entry, others)
      return invoke(entry, command.opts(), action)
    })
  }
  const help = program.command('help [topic]').allowExcessArguments(false)
  help.configureHelp({ formatHelp: () => helpOn('help', terminal) })
  help.action((topic?: string) => void terminal.stdout.write(helpOn(topic, terminal)))
  return program
}

const commandNames: readonly string[] = [...commands.map(command => command.name), 'help']

/**
 * Returns the help on a command, on everything (`all`), or without a topic the short help of the program.
 * @throws {UsageError} if there is no such command
 */
function helpOn(topic: string | undefined, { stdout }: Terminal): string {
  const columns = Math.min(stdout.columns ?? 100, 120)
  if (topic === undefined) return shortHelp(columns)
  if (topic === 'all') return fullHelp(columns)
  if (topic === 'help') return helpOfHelp(columns)
  const entry = commands.find(command => command.name === topic)
  if (entry === undefined) throw unknownWord('command', topic, commandNames)
  return commandHelp(entry, columns)
}

/** Returns the word after `--help` or `-h`, if there is one. */
function wordAfterHelp(args: readonly string[]): string | undefined {
  const word = args[args.findIndex(arg => arg === '--help' || arg === '-h') + 1]
  return word?.startsWith('-') ? undefined : word
}

/** Returns the arguments of a command, of which the first one is the action, or undefined if there is none. */
function actionFirst({ name, actions = [] }: CommandEntry, args: readonly string[]): readonly (string | undefined)[] {
  const [word] = args
  if (actions.length === 0 || word === undefined) return [undefined, ...args]
  const names = actions.map(action => action.name)
  if (!names.includes(word))
    throw unknownWord(
      'action',
      `${name} ${word}`,
      names.map(action => `${name} ${action}`)
    )
  return args
}

/** @throws {UsageError} if the command has arguments, because all commands accept only flags */
function rejectArguments({ name }: CommandEntry, [excess]: readonly (string | undefined)[]): void {
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

function toCommander({ short, flags, isRepeatable }: CommandLineOption): Option {
  const option = new Option(short === undefined ? flags : `${short}, ${flags}`)
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
