import type { CommandEntry } from '../command.js'

// Lists the commands. Each command has its own file in this folder. The file is loaded only when the command runs.

/** The command that runs if the command line contains no command. */
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
    summary: 'Test the settings with the real provider and report problems.',
    options: [{ flags: '--json', summary: 'Print JSON.' }],
    takesSettings: true,
    load: async () => (await import('./check.js')).check
  },
  {
    name: 'config',
    summary: 'Show the effective settings and the source of each. Secrets stay hidden.',
    options: [{ flags: '--json', summary: 'Print JSON.' }],
    takesSettings: true,
    load: async () => (await import('./config.js')).config
  },
  {
    name: 'init',
    summary: 'Write a settings file and a .env with a new secret. Never overwrites a file.',
    options: [{ flags: '--yes', summary: 'Ask no questions, and take the answers from the flags.' }],
    takesSettings: true,
    load: async () => (await import('./init.js')).init
  },
  {
    name: 'sessions',
    summary: 'List the sessions of a user, or end them.',
    action: { name: 'end', summary: 'End the sessions on all replicas, and revoke their refresh tokens.' },
    options: [
      { flags: '--user <name>', summary: 'Select the user by e-mail address, user name, display name or sub.' },
      { flags: '--json', summary: 'Print JSON.' }
    ],
    takesSettings: true,
    load: async () => (await import('./sessions.js')).sessions
  },
  {
    name: 'secret',
    summary: 'Print a new session secret.',
    load: async () => (await import('./init.js')).secret
  }
]
