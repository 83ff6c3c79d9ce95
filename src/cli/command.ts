import type { Sources } from '../config/load.js'
import type { Flags } from '../config/sources.js'
import type { Terminal } from './terminal.js'

/** The input of a command. */
export interface Invocation {
  readonly terminal: Terminal
  readonly flags: Flags
  readonly configFile: string | undefined
  /** The word after the name of the command, if the command has one of `actions`. */
  readonly action: string | undefined
  /** The options that are not settings. The keys are their names in camel case. */
  readonly options: Readonly<Record<string, unknown>>
}

/** Returns the exit code. */
export type Command = (invocation: Invocation) => Promise<number>

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** The words that may follow the name of the command. */
  readonly actions?: readonly { readonly name: string; readonly summary: string }[]
  readonly options?: readonly { readonly flags: string; readonly summary: string }[]
  /** True if the command uses the settings. Its help then mentions the flags of the settings. */
  readonly takesSettings?: true
  readonly load: () => Promise<Command>
}

export function sourcesOf({ terminal, flags, configFile }: Invocation): Sources {
  const { env, cwd } = terminal
  return { env, cwd, flags, ...(configFile !== undefined && { configFile }) }
}
