import type { CommandEntry, CommandFlag } from '../terminal/command.js'

// Lists the commands and their flags. Each command is a file of this folder, which is loaded only when the command runs.

const json: CommandFlag = { flags: '--json', summary: 'Print JSON.' }

const settingsFile: CommandFlag = {
  flags: '--config <file>',
  group: 'Settings file:',
  summary: 'Read this settings file. (default: the first file found, such as platform-auth-server.config.yaml)'
}

const demo: readonly CommandFlag[] = [
  {
    flags: '--demo',
    group: 'Trying it out:',
    summary: 'Run with a built-in identity provider. No other settings are needed.'
  },
  {
    flags: '--demo-token-lifetime <duration>',
    group: 'Trying it out:',
    summary:
      'Let the access tokens of the built-in provider expire after this time. Choose a short time to see a refresh soon. (default: 3599s)'
  }
]

const watch: CommandFlag = {
  flags: '--watch',
  group: 'Server:',
  summary: 'Restart the server when the module of --extension, or a module that it imports, changes.'
}

/** The command that runs if the command line contains no command. Its flags can also be given before any command. */
export const defaultCommand: CommandEntry = {
  name: 'start',
  summary: 'Run the server (the default).',
  options: [settingsFile, watch, ...demo],
  load: async () => (await import('./start.js')).start
}

export const commands: readonly CommandEntry[] = [
  defaultCommand,
  {
    name: 'check',
    summary: 'Test the settings with the real provider and report problems.',
    options: [json, settingsFile, ...demo],
    load: async () => (await import('./check.js')).check
  },
  {
    name: 'config',
    summary: 'Show the effective settings and the source of each, but hide secrets.',
    options: [json, settingsFile],
    load: async () => (await import('./config.js')).config
  },
  {
    name: 'health',
    summary: 'Ask the server with the same settings on this machine if it is alive.',
    options: defaultCommand.options,
    load: async () => (await import('./health.js')).health
  },
  {
    name: 'init',
    summary: 'Write a settings file and a .env file with a new secret, but never overwrite a file.',
    options: [{ flags: '--yes', summary: 'Ask no questions, and take the answers from the flags.' }],
    load: async () => (await import('./init.js')).init
  },
  {
    name: 'sessions',
    summary: 'List the sessions of a user, or end them.',
    action: { name: 'end', summary: 'End the sessions on all replicas, and revoke their refresh tokens.' },
    options: [
      { flags: '--user <name>', summary: 'Select the user by sub, e-mail address, user name or display name.' },
      { flags: '--sub <sub>', summary: 'Select the user by sub only.' },
      { flags: '--name <name>', summary: 'Select the user by e-mail address, user name or display name only.' },
      { flags: '--email <address>', summary: 'Select the user by e-mail address only.' },
      json,
      settingsFile
    ],
    load: async () => (await import('./sessions.js')).sessions
  },
  {
    name: 'secret',
    summary: 'Print a new session secret.',
    options: [],
    ignoresSettings: true,
    load: async () => (await import('./init.js')).secret
  }
]
