import { join } from 'node:path'
import { findFiles } from '../../config/file.js'
import type { Values } from '../../config/settings.js'
import type { Command, Invocation } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { answersOfFlags, askFor, clientIdPlaceholder, withDefaults } from '../init/answers.js'
import {
  existingSecretsMessage,
  ignoreSecrets,
  keptMessage,
  secretsFile,
  secretsText,
  settingsFile,
  settingsText,
  writeNew
} from '../init/files.js'
import { createQuestions } from '../questions.js'

/**
 * Writes the two files that a new deployment needs: a settings file with comments, and a `.env` with the secrets. Never
 * overwrites a file.
 */
export const init: Command = async function init(invocation) {
  const { terminal, options } = invocation
  const { cwd, stdout, stderr } = terminal
  const given = await answersOfFlags(invocation)
  const [presentSettings] = await findFiles(cwd)
  const secretsMessage = await existingSecretsMessage(join(cwd, secretsFile))
  const needs = { settings: presentSettings === undefined, secrets: secretsMessage === undefined }

  const values = withDefaults(isAnswered(invocation) ? given : await ask(needs, given, invocation))
  const texts = { settings: settingsText(values), secrets: secretsText(values) }
  const written = {
    settings: needs.settings && (await writeNew(join(cwd, settingsFile), texts.settings)),
    secrets: needs.secrets && (await writeNew(join(cwd, secretsFile), texts.secrets, 0o600))
  }
  const ignored = written.secrets && (await ignoreSecrets(cwd))
  if (!written.settings) stderr.write(`${keptMessage(presentSettings ?? settingsFile)}.\n`)
  if (!written.secrets) stderr.write(`${secretsMessage ?? keptMessage(secretsFile)}.\n`)
  if (options.yes !== true && (written.settings || written.secrets))
    stdout.write(nextSteps({ ...written, ignored }, values))
  return exitCodes.fine
}

function isAnswered({ options, terminal: { stdin, stdout } }: Invocation): boolean {
  return options.yes === true || stdin.isTTY !== true || stdout.isTTY !== true
}

interface Files {
  readonly settings: boolean
  readonly secrets: boolean
  /** True if the file of secrets was added to `.gitignore`. */
  readonly ignored: boolean
}

async function ask(needs: Omit<Files, 'ignored'>, given: Values, { terminal }: Invocation): Promise<Values> {
  const questions = createQuestions(terminal)
  try {
    return await askFor(needs, given, questions)
  } finally {
    questions.close()
  }
}

function nextSteps(written: Files, values: Values): string {
  const hasClientId = values['platform.clientId'] !== clientIdPlaceholder
  const hasClientSecret = values['platform.clientSecret'] !== undefined
  const files = [...(written.settings ? [settingsFile] : []), ...(written.secrets ? [secretsFile] : [])]
  const steps = [
    ...(written.settings && !hasClientId ? [`Put the client id into ${settingsFile}.`] : []),
    ...(written.secrets && !hasClientSecret ? [`Put the client secret into ${secretsFile}.`] : []),
    ...(written.settings ? [`Register ${values['platform.callbackUrl']} as a callback URL at the provider.`] : []),
    'Test the settings: npx platform-auth-server check',
    'Start: npx platform-auth-server'
  ]
  const wroteFiles = `Wrote ${files.join(' and ')}.${written.ignored ? ` Added ${secretsFile} to .gitignore.` : ''}`
  return [wroteFiles, ...steps.map((step, index) => `${index + 1}. ${step}`), ''].join('\n')
}
