import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { type Checked, checkValue } from '../../config/check-value.js'
import { ConfigError, type Problem } from '../../config/errors.js'
import { type SettingKey, settingOf, type Values } from '../../config/settings.js'
import { layerOfFlags } from '../../config/sources.js'
import { readString, yesOrNo } from '../../config/types.js'
import { callbackPath } from '../../config/urls.js'
import type { Invocation } from '../command.js'
import { RunError } from '../errors.js'
import type { Terminal } from '../terminal.js'

export const clientIdPlaceholder = 'replace-with-your-client-id'

/**
 * Returns the settings that were given as flags. `init` does not ask for these settings.
 * @throws ConfigError listing the invalid flags
 */
export async function answersOfFlags({ flags, terminal }: Invocation): Promise<Values> {
  const { given } = await layerOfFlags(flags, terminal.cwd)
  const values: Partial<Record<SettingKey, unknown>> = {}
  const problems: Problem[] = []
  for (const [key, { source, ...found }] of given) {
    const checked: Checked =
      'value' in found ? checkValue(key, found.value) : { rejected: 'rejected' in found ? [found.rejected] : [] }
    if ('value' in checked) values[key] = checked.value
    else problems.push(...checked.rejected.map(message => ({ key, source, message })))
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return values as Values
}

/** Adds defaults that suit a new deployment. */
export function withDefaults(given: Values): Values {
  const { mode = 'single', port = 8080 } = given
  return {
    mode,
    port,
    'platform.clientId': clientIdPlaceholder,
    'platform.callbackUrl': `http://localhost:${port}${callbackPath}`,
    // The Autodesk viewer in the browser requests a new token when its token expires. Without a refresh margin, it
    // could get a token that expires within a second, and would have to request the next token immediately. The
    // provider has a quota, so sessions that began together should be refreshed at different times.
    'refresh.marginSeconds': 120,
    'refresh.spreadSeconds': 1500,
    ...given
  }
}

/** Asks for the settings that were not given as flags. An empty answer selects the default, or leaves the setting out. */
export async function askFor(
  topics: { settings: boolean; secrets: boolean },
  given: Values,
  questions: Questions
): Promise<Values> {
  const values: Partial<Record<SettingKey, unknown>> = { ...given }
  const ask = async (key: SettingKey, text: string, defaultAnswer = '') => {
    const answer = values[key] ?? (await answerTo(questions, key, text, defaultAnswer))
    if (answer !== undefined) values[key] = answer
  }
  if (topics.settings) {
    await ask(
      'mode',
      'Mode (single: one token that stays on the server; dual: also a public token for pages)',
      'single'
    )
    await ask('port', 'Port', '8080')
    await ask('platform.clientId', 'Client id (empty: fill it in later)')
    await ask('platform.callbackUrl', 'Callback URL', withDefaults(values as Values)['platform.callbackUrl'])
    await ask('access.allow', 'Who may sign in, as e-mail addresses and @domains (empty: everyone)')
  }
  if (topics.secrets) await ask('platform.clientSecret', 'Client secret, not shown (empty: fill it in later)')
  return values as Values
}

/** Asks if `.env` should be added to `.gitignore`. */
export async function askToIgnoreSecrets(questions: Questions): Promise<boolean> {
  const check = (answer: string): Checked => {
    const parsed = yesOrNo.parse(readString(yesOrNo, answer))
    return 'value' in parsed ? parsed : { rejected: ['must be yes or no.'] }
  }
  const text = 'Add .env to .gitignore, so that the secrets stay out of git (yes or no)'
  return (await questions.ask({ text, defaultAnswer: 'yes', isSecret: false, check })) === true
}

async function answerTo(questions: Questions, key: SettingKey, text: string, defaultAnswer: string): Promise<unknown> {
  const { type, secret = false } = settingOf(key)
  const check = (answer: string): Checked =>
    answer === '' ? { value: undefined } : checkValue(key, readString(type, answer))
  return questions.ask({ text, defaultAnswer, isSecret: secret, check })
}

interface Question {
  readonly text: string
  /** Replaces an empty answer. */
  readonly defaultAnswer: string
  /** True if the terminal must not show the answer. */
  readonly isSecret: boolean
  /** Returns the value of an answer, or the reason why it is invalid. */
  readonly check: (answer: string) => Checked
}

type Questions = ReturnType<typeof createQuestions>

export function createQuestions({ stdin, stdout }: Terminal) {
  let isHidden = false
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (!isHidden) stdout.write(chunk)
      done()
    }
  })
  const lines = createInterface({ input: stdin, output, terminal: true })
  // Ctrl-C and Ctrl-D close the interface. A pending question must then be aborted, because it would wait forever.
  const closed = new AbortController()
  lines.on('SIGINT', () => lines.close())
  lines.on('close', () => closed.abort())

  async function askOnce({ text, defaultAnswer, isSecret }: Question): Promise<string> {
    const prompt = `${text}${defaultAnswer ? ` [${defaultAnswer}]` : ''}: `
    if (!isSecret) return (await lines.question(prompt, { signal: closed.signal })).trim() || defaultAnswer
    stdout.write(prompt)
    isHidden = true
    try {
      return (await lines.question('', { signal: closed.signal })).trim() || defaultAnswer
    } finally {
      isHidden = false
      stdout.write('\n')
    }
  }

  return {
    /** Asks until the answer is valid, and returns its value. Throws RunError if the operator cancels. */
    async ask(question: Question): Promise<unknown> {
      for (;;) {
        const answer = await askOnce(question).catch((cause: unknown) => {
          throw new RunError('\nCancelled. No file was written.', { cause })
        })
        const checked = question.check(answer)
        if ('value' in checked) return checked.value
        for (const message of checked.rejected) stdout.write(`  The answer ${message}\n`)
      }
    },
    close: () => lines.close()
  }
}
