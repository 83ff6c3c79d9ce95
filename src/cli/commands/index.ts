import type { CommandEntry } from '../command.js'

// What can be asked of the command line. Each command is a file of its own beside this one, loaded when it is asked for.

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
