import { flagName } from '../../config/flags.js'
import type { CommandEntry } from '../command.js'
import { ownOptions, settingOptions } from '../options.js'

/** The words a shell can offer. */
export interface Words {
  readonly commands: readonly Word[]
  readonly flags: readonly Flag[]
  /** What may follow a command, by its name: its own flags and arguments. */
  readonly after: ReadonlyMap<string, readonly string[]>
}

export interface Word {
  readonly name: string
  readonly summary: string
}

export interface Flag extends Word {
  readonly value: 'none' | 'file' | 'folder' | 'other' | readonly string[]
}

export function wordsOf(commands: readonly CommandEntry[]): Words {
  const options = [...settingOptions(), ...ownOptions].filter(option => !option.hidden)
  return {
    commands,
    flags: [
      ...options.map(({ flags, summary, choices }) => ({
        name: flagName(flags),
        summary,
        value: kindOfValue(flags, choices)
      })),
      { name: '--help', summary: 'Print this help.', value: 'none' },
      { name: '--version', summary: 'Print the version.', value: 'none' }
    ],
    after: new Map(
      commands.map(({ name, options = [], argument }) => [
        name,
        [...options.map(({ flags }) => flagName(flags)), ...(argument?.choices ?? [])]
      ])
    )
  }
}

function kindOfValue(flags: string, choices: readonly string[] | undefined): Flag['value'] {
  if (!flags.includes('<')) return 'none'
  if (choices) return choices
  if (flags.endsWith('<file>')) return 'file'
  return flags.endsWith('<folder>') ? 'folder' : 'other'
}
