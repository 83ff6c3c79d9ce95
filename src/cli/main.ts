/**
 * Parses the command line, runs the command, and turns errors into a message and an exit code. Only commander and the
 * settings table are loaded before the command is known, so that `--help` is fast.
 */
import { CommanderError } from 'commander'
import { ConfigError, notGiven } from '../config/errors.js'
import { flagName, required, settingKeys, settingOf } from '../config/settings.js'
import { commands, defaultCommand } from './commands/index.js'
import { exitCodes, messageOf, RunError, UsageError, unknownWord } from './errors.js'
import { ownOptions, settingOptions } from './options.js'
import { parseCommandLine } from './program.js'
import { columnsOf, processTerminal, type Terminal, watchOutput, wrapLines } from './terminal.js'

/** Returns the exit code. */
export async function main(terminal: Terminal = processTerminal()): Promise<number> {
  let code: number = exitCodes.fine
  const output = watchOutput(terminal.stdout)
  try {
    await parseCommandLine(terminal, async (command, invocation) => {
      const run = await command.load()
      code = await run(invocation)
      // A failure to write to stdout does not change the exit code of the server.
      if (command !== defaultCommand) await output.flush()
    })
    return code
  } catch (error) {
    return report(error, terminal)
  }
}

function report(error: unknown, { stderr }: Terminal): number {
  if (error instanceof CommanderError && error.exitCode === 0) return exitCodes.fine
  const cause = error instanceof CommanderError ? usageErrorOf(error) : error
  const isMisuse = cause instanceof UsageError || cause instanceof ConfigError
  const isExpected = isMisuse || cause instanceof RunError
  const message = `${isExpected ? '' : 'platform-auth-server failed: '}${messageOf(cause)}`
  stderr.write(`${wrapLines(hasNoSettings(cause) ? `${firstSteps}\n\n${message}` : message, columnsOf(stderr))}\n`)
  return isMisuse ? exitCodes.misused : exitCodes.failed
}

const firstSteps = [
  'No settings were found. Start with one of these commands:',
  '  npx platform-auth-server --demo   needs no settings and no account',
  '  npx platform-auth-server init     writes the settings files to fill in'
].join('\n')

/**
 * Returns true if all required settings are missing, and there is no other problem and no warning. A warning may tell
 * why they are missing.
 */
function hasNoSettings(error: unknown): boolean {
  if (!(error instanceof ConfigError)) return false
  const needed = settingKeys.filter(key => settingOf(key).default === required)
  const isMissing = (key: string) => error.problems.some(problem => problem.key === key && problem.source === notGiven)
  return error.problems.length === needed.length && error.warnings.length === 0 && needed.every(isMissing)
}

function usageErrorOf(error: CommanderError): UsageError {
  if (error.code === 'commander.optionMissingArgument') return missingValue(error)
  const word = error.code === 'commander.unknownOption' && /'(.+)'/s.exec(error.message)?.[1]
  if (!word) return new UsageError(error.message.replace(/^error: /, ''))
  if (word === '-v') return new UsageError('There is no flag -v. Did you mean -V, which prints the version?')
  const options = [...settingOptions(), ...ownOptions, ...commands.flatMap(command => command.options ?? [])]
  const flags = [...options.map(option => flagName(option.flags)), '--help', '--version']
  const owners = commands.filter(({ options = [] }) => options.some(option => flagName(option.flags) === word))
  if (owners.length > 0)
    return new UsageError(`${word} is an option of ${owners.map(({ name }) => name).join(' or ')} only.`)
  const valueless = flags.find(flag => word.startsWith(`${flag}=`))
  return valueless ? new UsageError(`${valueless} takes no value.`) : unknownWord('flag', word, flags)
}

/**
 * Explains that an option needs a value. The message of commander contains the declaration of the option, such as
 * `'--mode <mode>'`.
 */
function missingValue(error: CommanderError): UsageError {
  const [, declared = ''] = /'(?:-\w, )?(.+)'/s.exec(error.message) ?? []
  const option = settingOptions().find(({ flags }) => flags === declared)
  const [flag = '', value = ''] = declared.split(' ')
  if (option?.key === undefined || flag.endsWith('-file'))
    return new UsageError(`${flag} needs a value: ${flag} ${value}`)
  return new UsageError(`${flag} needs a value: ${settingOf(option.key).type.allowed}.`)
}
