import type { LoadConfigOptions } from '../../config/load.js'
import type { Flags } from '../../config/settings.js'
import { DAY, duration } from '../../config/types/units.js'
import type { DemoOptions } from '../../demo/open.js'
import { UsageError } from './expected-errors.js'
import type { Terminal } from './terminal.js'

/** The input of a command. */
export interface Invocation {
  readonly terminal: Terminal
  readonly flags: Flags
  /** True if the action of the command was given, such as `end` in `sessions end`. */
  readonly hasAction: boolean
  /** All options that were given. The keys are their names in camel case. */
  readonly options: Readonly<Record<string, unknown>>
}

/** Returns the exit code. */
export type Command = (invocation: Invocation) => Promise<number>

/** A flag of the command line that is not a setting. */
export interface CommandFlag {
  /** The declaration in the syntax of commander, such as `--config <file>`. */
  readonly flags: string
  readonly summary: string
  /** The heading above the flag in `--help all`. */
  readonly group?: string
}

export interface CommandEntry {
  readonly name: string
  readonly summary: string
  /** A word that may follow the name of the command. */
  readonly action?: { readonly name: string; readonly summary: string }
  readonly options: readonly CommandFlag[]
  /** True if the command does not use the settings. The help of all other commands mentions the flags of the settings. */
  readonly ignoresSettings?: true
  readonly load: () => Promise<Command>
}

export function sourcesOf({ terminal, flags, options: { config } }: Invocation): LoadConfigOptions {
  const { env, cwd } = terminal
  return { env, cwd, flags, ...(typeof config === 'string' && { configFile: config }) }
}

/** Returns the options of the demo, or undefined without `--demo`. Throws UsageError for an invalid value. */
export function readDemoOptions({ options: { demo, demoTokenLifetime } }: Invocation): DemoOptions | undefined {
  if (demo === true && demoTokenLifetime === undefined) return {}
  if (demo !== true && demoTokenLifetime === undefined) return undefined
  const { parse, allowed } = duration(1, DAY)
  const parsed = parse(demoTokenLifetime)
  if (!('value' in parsed)) throw new UsageError(`--demo-token-lifetime must be ${allowed}.`)
  if (demo !== true) throw new UsageError('--demo-token-lifetime needs --demo.')
  return { tokenLifetimeSeconds: parsed.value }
}
