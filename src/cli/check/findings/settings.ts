import { type ConfigError, describeProblem, type Problem } from '../../../config/errors.js'
import type { LoadedConfig } from '../../../config/load.js'
import { type Finding, findingsFor } from '../finding.js'

const { ok, warning } = findingsFor('settings')

export function settings({ warnings, file }: LoadedConfig): Finding[] {
  const source = file === undefined ? 'without a settings file' : `with the file ${file}`
  return [ok(`The settings are valid (${source}).`), ...warnings.map(warningOf)]
}

/** Reports invalid settings. They need no advice, because each message already contains the allowed values. */
export function invalidSettings({ problems, warnings }: ConfigError): Finding[] {
  return [
    ...problems.map((problem): Finding => ({ check: 'settings', status: 'failed', message: sentence(problem) })),
    ...warnings.map(warningOf)
  ]
}

function warningOf(problem: Problem): Finding {
  return warning(sentence(problem), 'Change this setting, unless its value is intended.')
}

function sentence(problem: Problem): string {
  return `${describeProblem(problem).replace(/[.?]$/, '')}.`
}
