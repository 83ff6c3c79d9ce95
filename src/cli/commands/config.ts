import { type Colours, coloursFor } from '../../base/colours.js'
import { type Resolution, resolveSettings } from '../../config/load.js'
import { defaultText, type SettingKey, settingKeys, shownValue, type Values } from '../../config/settings.js'
import { ConfigError, notGiven } from '../../config/types/problem.js'
import { defaultEndpoint } from '../../provider/metadata.js'
import { type Command, sourcesOf } from '../terminal/command.js'
import { exitCodes } from '../terminal/expected-errors.js'
import { columnsOf, wrap, wrapLines } from '../terminal/terminal.js'

/** Shows all settings, even if some are invalid, because this command helps an operator to find the cause of an error. */
export const config: Command = async function config(invocation) {
  const { terminal, options } = invocation
  const { stdout, stderr } = terminal
  const resolution = await resolveSettings(sourcesOf(invocation))
  const { problems, warnings, file } = resolution
  if (options.json) stdout.write(`${JSON.stringify(jsonOf(resolution), undefined, 2)}\n`)
  else {
    stdout.write(`Settings file: ${file ?? 'none found'}\n\n`)
    stdout.write(formatSettings(resolution, columnsOf(stdout), coloursFor(terminal)))
    if (problems.length + warnings.length > 0) {
      stderr.write(`${wrapLines(new ConfigError(problems, warnings).message, columnsOf(stderr))}\n`)
    }
  }
  return problems.length > 0 ? exitCodes.misused : exitCodes.fine
}

/** Formats the settings: the key, the value and its source. A value can have several lines, such as one for each proxy rule. */
function formatSettings(
  { values, sources, problems }: Resolution,
  columns: number | undefined,
  { bold, dim }: Colours
): string {
  const rejected = new Set(problems.map(problem => problem.key))
  const width = Math.max(...settingKeys.map(key => key.length))
  const rows = settingKeys.map(key => {
    const source = sources[key]
    const isRejected = values[key] === undefined && rejected.has(key)
    const reason = source === notGiven ? '(missing)' : '(invalid)'
    const [text = '', ...more] = (isRejected ? reason : shownText(key, values)).split('\n')
    const lines = [
      `${bold(key.padEnd(width))}  ${text}  ${dim(source)}`,
      ...more.map(line => ' '.repeat(width + 2) + line)
    ]
    return lines.map(line => `${wrap(line, columns, 4)}\n`).join('')
  })
  return rows.join('')
}

/**
 * Returns the value as a string for the terminal. For an endpoint from the discovery document, returns `(discovered at
 * <issuer>)`.
 */
function shownText(key: SettingKey, values: Values): string {
  const value = shownOrBuiltIn(key, values)
  const { 'platform.issuer': issuer } = values
  if (value === null && issuer !== undefined && defaultEndpoint(key) !== undefined) return `(discovered at ${issuer})`
  if (value === null || (Array.isArray(value) && value.length === 0)) return `(${defaultText(key)})`
  if (!Array.isArray(value)) return String(value)
  // Items that contain spaces, such as proxy rules, are written on separate lines.
  return value.join(value.some(item => String(item).includes(' ')) ? '\n' : ' ')
}

function jsonOf({ values, sources, problems, warnings, file }: Resolution): object {
  const settings = settingKeys.map(key => [key, { value: shownOrBuiltIn(key, values), source: sources[key] }] as const)
  return { settings: Object.fromEntries(settings), file: file ?? null, problems, warnings }
}

/** Returns the value for display, or null if there is none. An endpoint that is not set has its built-in value. */
function shownOrBuiltIn(key: SettingKey, values: Values): unknown {
  const builtIn = values['platform.issuer'] === undefined ? defaultEndpoint(key) : undefined
  return shownValue(key, values[key] ?? builtIn) ?? null
}
