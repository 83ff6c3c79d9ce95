/**
 * Parses the command line, runs the command, and turns errors into a message and an exit code. Only commander and the
 * settings table are loaded before the command is known, so that `--help` is fast.
 */

import { required, settingKeys, settingOf } from '../config/settings.js'
import { ConfigError, notGiven } from '../config/types/problem.js'
import { parseCommandLine } from './commander.js'
import { defaultCommand } from './commands/index.js'
import { exitCodes, messageOf, RunError, UsageError } from './terminal/expected-errors.js'
import { columnsOf, processTerminal, type Terminal, watchOutput, wrapLines } from './terminal/terminal.js'

export { processTerminal }

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
  const isMisuse = error instanceof UsageError || error instanceof ConfigError
  const isExpected = isMisuse || error instanceof RunError
  const message = `${isExpected ? '' : 'platform-auth-server failed: '}${messageOf(error)}`
  stderr.write(`${wrapLines(hasNoSettings(error) ? `${firstSteps}\n\n${message}` : message, columnsOf(stderr))}\n`)
  return isMisuse ? exitCodes.misused : exitCodes.failed
}

const firstSteps = [
  'No settings were found. Start with one of these commands:',
  '  npx platform-auth-server --demo   needs no settings and no account',
  '  npx platform-auth-server init     creates the settings files'
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
