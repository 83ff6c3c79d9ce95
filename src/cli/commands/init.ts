import { join } from 'node:path'
import { findFiles } from '../../config/file.js'
import type { Values } from '../../config/settings.js'
import type { Command, Invocation } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { answersOfFlags, askFor, clientIdPlaceholder, withDefaults } from '../init/answers.js'
import {
  ignoreSecrets,
  leftAsItIs,
  remarkOnSecrets,
  secretsFile,
  secretsText,
  settingsFile,
  settingsText,
  writeNew
} from '../init/files.js'
import { askAt } from '../questions.js'

/**
 * Writes the files that a new deployment needs: a settings file that explains itself, and the secrets beside it. It never
 * overwrites a file.
 */
export const init: Command = async function init(invocation) {
  const { terminal, options } = invocation
  const { cwd, stdout, stderr } = terminal
  const given = await answersOfFlags(invocation)
  const [presentSettings] = await findFiles(cwd)
  const remark = await remarkOnSecrets(join(cwd, secretsFile))
  const needs = { settings: presentSettings === undefined, secrets: remark === undefined }

  const values = withDefaults(isAnswered(invocation) ? given : await ask(needs, given, invocation))
  const texts = { settings: settingsText(values), secrets: secretsText(values) }
  const wrote = {
    settings: needs.settings && (await writeNew(join(cwd, settingsFile), texts.settings)),
    secrets: needs.secrets && (await writeNew(join(cwd, secretsFile), texts.secrets, 0o600))
  }
  const ignored = wrote.secrets && (await ignoreSecrets(cwd))
  if (!wrote.settings) stderr.write(`${leftAsItIs(presentSettings ?? settingsFile)}.\n`)
  if (!wrote.secrets) stderr.write(`${remark ?? leftAsItIs(secretsFile)}.\n`)
  if (options.yes !== true && (wrote.settings || wrote.secrets)) stdout.write(nextSteps({ ...wrote, ignored }, values))
  return exitCodes.fine
}

function isAnswered({ options, terminal: { stdin, stdout } }: Invocation): boolean {
  return options.yes === true || stdin.isTTY !== true || stdout.isTTY !== true
}

interface Files {
  readonly settings: boolean
  readonly secrets: boolean
  /** The file of secrets was added to `.gitignore`. */
  readonly ignored: boolean
}

async function ask(needs: Omit<Files, 'ignored'>, given: Values, { terminal }: Invocation): Promise<Values> {
  const questions = askAt(terminal)
  try {
    return await askFor(needs, given, questions)
  } finally {
    questions.close()
  }
}

function nextSteps(wrote: Files, values: Values): string {
  const hasClientId = values['platform.clientId'] !== clientIdPlaceholder
  const hasClientSecret = values['platform.clientSecret'] !== undefined
  const files = [...(wrote.settings ? [settingsFile] : []), ...(wrote.secrets ? [secretsFile] : [])]
  const steps = [
    ...(wrote.settings && !hasClientId ? [`Put the client id into ${settingsFile}.`] : []),
    ...(wrote.secrets && !hasClientSecret ? [`Put the client secret into ${secretsFile}.`] : []),
    ...(wrote.settings ? [`Register ${values['platform.callbackUrl']} as a callback URL at the provider.`] : []),
    'Try the settings: npx platform-auth-server check',
    'Start: npx platform-auth-server'
  ]
  const wroteFiles = `Wrote ${files.join(' and ')}.${wrote.ignored ? ` Added ${secretsFile} to .gitignore.` : ''}`
  return [wroteFiles, ...steps.map((step, index) => `${index + 1}. ${step}`), ''].join('\n')
}
