import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { checkValue } from '../../config/check-value.js'
import { type Flags, rows, type SettingKey, settingOf, type Values } from '../../config/settings.js'
import { layerOfFlags } from '../../config/sources/flags.js'
import { ConfigError, type ConfigProblem } from '../../config/types/problem.js'
import { DAY, MINUTE } from '../../config/types/units.js'
import { callbackPath } from '../../config/types/urls.js'
import { readString } from '../../config/types/value-type.js'
import { RunError } from '../terminal/expected-errors.js'
import type { Terminal } from '../terminal/terminal.js'

export const clientIdPlaceholder = 'replace-with-your-client-id'

/** Returns the settings that were given as flags. Throws ConfigError with all invalid flags. */
export async function valuesOfFlags(flags: Flags, cwd: string): Promise<Values> {
  const { given } = await layerOfFlags(flags, rows, cwd)
  const values: Partial<Record<SettingKey, unknown>> = {}
  const problems: ConfigProblem[] = []
  for (const [key, { source, ...found }] of given) {
    const checked = 'value' in found ? checkValue(key as SettingKey, found.value) : found
    if ('value' in checked) values[key as SettingKey] = checked.value
    else if ('rejected' in checked) problems.push(...checked.rejected.map(message => ({ key, source, message })))
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
    'refresh.beforeExpiry': 2 * MINUTE,
    'refresh.jitter': 25 * MINUTE,
    // A session that is used never ends otherwise.
    'session.maxLifetime': 30 * DAY,
    ...given
  }
}

/** True for each file that will be written. */
export type Written = Readonly<Record<'settings' | 'secrets', boolean>>

/**
 * Asks for the settings that are needed and were not given as flags. An empty answer selects the default, or leaves the
 * setting out.
 */
export async function askFor(needs: Written, given: Values, { stdin, stdout }: Terminal): Promise<Values> {
  const values: Partial<Record<SettingKey, unknown>> = { ...given }
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

  async function answerTo(prompt: string, isSecret: boolean): Promise<string> {
    if (isSecret) stdout.write(prompt)
    isHidden = isSecret
    const answer = await lines.question(isSecret ? '' : prompt, { signal: closed.signal }).catch((cause: unknown) => {
      throw new RunError('\nCancelled. No file was written.', { cause })
    })
    isHidden = false
    if (isSecret) stdout.write('\n')
    return answer.trim()
  }

  /** Asks until the answer is valid. */
  async function askSetting(key: SettingKey, text: string, defaultAnswer = ''): Promise<void> {
    const { type, secret = false } = settingOf(key)
    while (values[key] === undefined) {
      const answer = (await answerTo(`${text}${defaultAnswer && ` [${defaultAnswer}]`}: `, secret)) || defaultAnswer
      if (answer === '') return
      const checked = checkValue(key, readString(type, answer))
      if ('value' in checked) values[key] = checked.value
      else for (const message of checked.rejected) stdout.write(`  The answer ${message}\n`)
    }
  }

  try {
    if (needs.settings) {
      const modes = 'single: one token that stays on the server; dual: also a public token for pages'
      await askSetting('mode', `Mode (${modes})`, 'single')
      await askSetting('port', 'Port', '8080')
      await askSetting('platform.clientId', 'Client id (empty: fill it in later)')
      await askSetting('platform.callbackUrl', 'Callback URL', withDefaults(values as Values)['platform.callbackUrl'])
      await askSetting(
        'access.allow',
        'Who may sign in, as e-mail addresses and @domains (* for every account of the provider, or empty to decide later)'
      )
    }
    if (needs.secrets)
      await askSetting('platform.clientSecret', 'Client secret (not shown; leave it empty to add it later)')
    return values as Values
  } finally {
    lines.close()
  }
}
