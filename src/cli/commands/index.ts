import type { Flags } from '../../config/flags.js'
import type { Sources } from '../../config/resolve.js'
import type { Terminal } from '../terminal.js'

// What can be asked of the command line. Each command is a file of its own beside this one, loaded when it is asked for.

/** What a command is given. */
export interface Invocation {
  readonly terminal: Terminal
  readonly flags: Flags
  readonly configFile: string | undefined
  /** Arguments after the command's name. */
  readonly args: readonly string[]
  /** Options that are no settings, by their name in camel case. */
  readonly options: Readonly<Record<string, unknown>>
}

/** Returns the exit code. */
export type Command = (invocation: Invocation) => Promise<number>

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** As commander writes them, with the words a shell may offer. */
  readonly argument?: { readonly syntax: string; readonly choices: readonly string[] }
  readonly options?: readonly { readonly flags: string; readonly summary: string }[]
  readonly load: () => Promise<Command>
}

/** What is done when nothing is said. */
export const defaultCommand: CommandEntry = {
  name: 'start',
  summary: 'Run the server (the default).',
  load: async () => (await import('./start.js')).start
}

export const commands: readonly CommandEntry[] = [
  defaultCommand,
  {
    name: 'config',
    summary: 'Show the settings in effect and where each comes from; secrets stay hidden.',
    options: [{ flags: '--json', summary: 'As JSON.' }],
    load: async () => (await import('./config.js')).config
  },
  {
    name: 'secret',
    summary: 'Print a new session secret.',
    load: async () => (await import('./secret.js')).secret
  }
]

export function sourcesOf({ terminal, flags, configFile }: Invocation): Sources {
  const { env, cwd } = terminal
  return { env, cwd, flags, ...(configFile !== undefined && { configFile }) }
}
