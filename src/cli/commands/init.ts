import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { rows, type Values } from '../../config/settings.js'
import { layerOfFile } from '../../config/sources/settings-file.js'
import { newSecret } from '../../config/types/secrets.js'
import { ignoreFile, ignoreSecrets, secretsFile, secretsText, settingsText, writeNew, yamlFile } from '../init/files.js'
import { askFor, clientIdPlaceholder, valuesOfFlags, type Written, withDefaults } from '../init/questions.js'
import type { Command } from '../terminal/command.js'
import { exitCodes } from '../terminal/expected-errors.js'

/**
 * Writes the two files that a new deployment needs: a short settings file, and a `.env` with the secrets. Never overwrites a
 * file. In a git repository that does not ignore `.env`, adds this file to `.gitignore`.
 */
export const init: Command = async function init({ terminal, flags, options }) {
  const { cwd, stdin, stdout, stderr } = terminal
  const given = await valuesOfFlags(flags, cwd)
  const { file } = await layerOfFile(cwd, rows)
  const existingSettings = file === undefined ? undefined : relative(cwd, file)
  const needs = { settings: existingSettings === undefined, secrets: !existsSync(join(cwd, secretsFile)) }
  const asks = options.yes !== true && stdin.isTTY === true && stdout.isTTY === true
  const values = withDefaults(asks ? await askFor(needs, given, terminal) : given)
  const texts = { settings: settingsText(values), secrets: secretsText(values) }
  const settings = needs.settings && (await writeNew(join(cwd, yamlFile), texts.settings))
  const secrets = needs.secrets && (await writeNew(join(cwd, secretsFile), texts.secrets, 0o600))
  const protection = secrets ? await ignoreSecrets(cwd) : 'ignored'

  const kept = [!settings && (existingSettings ?? yamlFile), !secrets && secretsFile].filter(Boolean)
  for (const file of kept) stderr.write(`${file} exists already and was not changed.\n`)
  const files = [settings && yamlFile, secrets && secretsFile].filter(Boolean)
  if (files.length === 0) return exitCodes.fine
  const results = [
    `Wrote ${files.join(' and ')}.`,
    secrets && `Only your user can read ${secretsFile}, because it contains the secrets.`,
    protection === 'added' && `Added ${secretsFile} to ${ignoreFile}.`,
    protection === 'none' && `Before you put this folder under version control, add ${secretsFile} to ${ignoreFile}.`
  ].filter(Boolean)
  stdout.write([...results, ...nextSteps({ settings, secrets }, values), ''].join('\n'))
  return exitCodes.fine
}

function nextSteps(written: Written, values: Values): string[] {
  const hasClientId = values['platform.clientId'] !== clientIdPlaceholder
  const hasClientSecret = values['platform.clientSecret'] !== undefined
  const steps = [
    written.settings && !hasClientId && `Put the client id into ${yamlFile}.`,
    written.settings && values['access.allow'] === undefined && `Put who may sign in into ${yamlFile} (access.allow).`,
    written.secrets && !hasClientSecret && `Put the client secret into ${secretsFile}.`,
    written.settings && `Register ${values['platform.callbackUrl']} as a callback URL with the provider.`,
    'Test the settings: npx platform-auth-server check',
    'Start: npx platform-auth-server'
  ]
  return steps.filter(Boolean).map((step, index) => `${index + 1}. ${step}`)
}

/** Prints a secret, for deployments that were not set up with `init`. */
export const secret: Command = async function secret({ terminal }) {
  terminal.stdout.write(`${newSecret()}\n`)
  return exitCodes.fine
}
