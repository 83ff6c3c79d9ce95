import { join } from 'node:path'
import { findFiles } from '../../config/file.js'
import { newSecret } from '../../config/secrets.js'
import type { Values } from '../../config/settings.js'
import type { Command, Invocation } from '../command.js'
import { exitCodes } from '../errors.js'
import {
  existingSecretsMessage,
  gitStateOf,
  ignoreFile,
  ignoreSecrets,
  keptMessage,
  secretsFile,
  secretsText,
  settingsFile,
  settingsText,
  writeNew
} from '../init/files.js'
import {
  answersOfFlags,
  askFor,
  askToIgnoreSecrets,
  clientIdPlaceholder,
  createQuestions,
  withDefaults
} from '../init/questions.js'

/**
 * Writes the two files that a new deployment needs: a short settings file, and a `.env` with the secrets. Never overwrites a
 * file. Adds `.env` to `.gitignore` if the operator agrees, or without a question if the folder belongs to a git repository.
 */
export const init: Command = async function init(invocation) {
  const { cwd, stdout, stderr } = invocation.terminal
  const given = await answersOfFlags(invocation)
  const [presentSettings] = await findFiles(cwd)
  const secretsMessage = await existingSecretsMessage(join(cwd, secretsFile))
  const git = await gitStateOf(cwd)
  const needs = {
    settings: presentSettings === undefined,
    secrets: secretsMessage === undefined,
    ignoring: secretsMessage === undefined && git !== 'ignored'
  }

  const answers = isAnswered(invocation)
    ? { values: given, ignores: git === 'not ignored' }
    : await ask(needs, given, invocation)
  const values = withDefaults(answers.values)
  const texts = { settings: settingsText(values), secrets: secretsText(values) }
  const written = {
    settings: needs.settings && (await writeNew(join(cwd, settingsFile), texts.settings)),
    secrets: needs.secrets && (await writeNew(join(cwd, secretsFile), texts.secrets, 0o600))
  }
  const ignored = written.secrets && needs.ignoring && answers.ignores && (await ignoreSecrets(cwd))
  if (!written.settings) stderr.write(`${keptMessage(presentSettings ?? settingsFile)}.\n`)
  if (!written.secrets) stderr.write(`${secretsMessage ?? keptMessage(secretsFile)}.\n`)
  if (written.settings || written.secrets) {
    const isExposed = written.secrets && needs.ignoring && !ignored
    stdout.write([...results({ ...written, ignored, isExposed }), ...nextSteps(written, values), ''].join('\n'))
  }
  return exitCodes.fine
}

function isAnswered({ options, terminal: { stdin, stdout } }: Invocation): boolean {
  return options.yes === true || stdin.isTTY !== true || stdout.isTTY !== true
}

interface Needs {
  readonly settings: boolean
  readonly secrets: boolean
  /** True if `.env` will be written and git does not ignore it. */
  readonly ignoring: boolean
}

interface Answers {
  readonly values: Values
  /** True if `.env` should be added to `.gitignore`. */
  readonly ignores: boolean
}

async function ask(needs: Needs, given: Values, { terminal }: Invocation): Promise<Answers> {
  const questions = createQuestions(terminal)
  try {
    const values = await askFor(needs, given, questions)
    return { values, ignores: needs.ignoring && (await askToIgnoreSecrets(questions)) }
  } finally {
    questions.close()
  }
}

interface Written {
  readonly settings: boolean
  readonly secrets: boolean
}

/** Says which files were written. `isExposed` is true if git would not ignore the secrets. */
function results(written: Written & { readonly ignored: boolean; readonly isExposed: boolean }): string[] {
  const files = [...(written.settings ? [settingsFile] : []), ...(written.secrets ? [secretsFile] : [])]
  return [
    `Wrote ${files.join(' and ')}.`,
    ...(written.secrets ? [`Only your user can read ${secretsFile}, because it contains the secrets.`] : []),
    ...(written.ignored ? [`Added ${secretsFile} to ${ignoreFile}.`] : []),
    ...(written.isExposed
      ? [`Before you put this folder under version control, add ${secretsFile} to ${ignoreFile}.`]
      : [])
  ]
}

function nextSteps(written: Written, values: Values): string[] {
  const hasClientId = values['platform.clientId'] !== clientIdPlaceholder
  const hasClientSecret = values['platform.clientSecret'] !== undefined
  const steps = [
    ...(written.settings && !hasClientId ? [`Put the client id into ${settingsFile}.`] : []),
    ...(written.secrets && !hasClientSecret ? [`Put the client secret into ${secretsFile}.`] : []),
    ...(written.settings ? [`Register ${values['platform.callbackUrl']} as a callback URL at the provider.`] : []),
    'Test the settings: npx platform-auth-server check',
    'Start: npx platform-auth-server'
  ]
  return steps.map((step, index) => `${index + 1}. ${step}`)
}

/** Prints a secret for a deployment whose files `init` did not write. */
export const secret: Command = async function secret({ terminal }) {
  terminal.stdout.write(`${newSecret()}\n`)
  return exitCodes.fine
}
