import { ConfigError } from '../../config/errors.js'
import { type Resolution, resolveSettings } from '../../config/resolve.js'
import { type SettingKey, settingKeys } from '../../config/settings.js'
import { shownText, shownValue } from '../../config/show.js'
import { type Command, sourcesOf } from '../command.js'
import { exitCodes } from '../exit-codes.js'

/** Shows everything it found even if the server would not start with it: that is when one wants to look. */
export const config: Command = async function config(invocation) {
  const { stdout, stderr } = invocation.terminal
  const resolution = await resolveSettings(sourcesOf(invocation))
  const { problems, warnings } = resolution
  if (invocation.options.json) stdout.write(`${JSON.stringify(asJson(resolution), undefined, 2)}\n`)
  else {
    stdout.write(asTable(resolution))
    if (problems.length + warnings.length > 0) stderr.write(`${new ConfigError(problems, warnings).message}\n`)
  }
  return problems.length > 0 ? exitCodes.misused : exitCodes.fine
}

function asTable({ values, origins, problems }: Resolution): string {
  const refused = new Set(problems.map(problem => problem.key))
  const text = (key: SettingKey) =>
    values[key] === undefined && refused.has(key) ? '(not usable)' : shownText(key, values)
  const rows = settingKeys.map(key => [key, text(key), origins[key]] as const)
  const widths = [0, 1].map(column => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows
    .map(
      row =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`
    )
    .join('')
}

function asJson({ values, origins, problems, warnings, file }: Resolution): object {
  const settings = settingKeys.map(
    key => [key, { value: shownValue(key, values) ?? null, origin: origins[key] }] as const
  )
  return { settings: Object.fromEntries(settings), file: file ?? null, problems, warnings }
}
