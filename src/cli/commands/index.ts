import type { CommandEntry } from '../command.js'

// The commands. Each is a file of its own beside this one, which is loaded when the command is given.

/** The command that runs when none is given. */
export const defaultCommand: CommandEntry = {
  name: 'start',
  summary: 'Run the server (the default).',
  takesSettings: true,
  load: async () => (await import('./start.js')).start
}

export const commands: readonly CommandEntry[] = [
  defaultCommand,
  {
    name: 'check',
    summary: 'Try the settings on the real provider and say what will not work.',
    options: [{ flags: '--json', summary: 'As JSON.' }],
    takesSettings: true,
    load: async () => (await import('./check.js')).check
  },
  {
    name: 'config',
    summary: 'Show the settings in effect and where each comes from; secrets stay hidden.',
    options: [{ flags: '--json', summary: 'As JSON.' }],
    takesSettings: true,
    load: async () => (await import('./config.js')).config
  },
  {
    name: 'init',
    summary: 'Write a settings file and a .env with a fresh secret; asks on a terminal, and never overwrites.',
    options: [{ flags: '--yes', summary: 'Ask nothing and say nothing; flags are the answers.' }],
    takesSettings: true,
    load: async () => (await import('./init.js')).init
  },
  {
    name: 'secret',
    summary: 'Print a new session secret.',
    load: async () => (await import('./secret.js')).secret
  }
]
