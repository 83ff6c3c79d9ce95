import { type ConfigError, describeProblem, type Problem } from '../../config/errors.js'
import type { LoadedConfig } from '../../config/load.js'
import { about, type Finding } from './finding.js'

const { ok, warning } = about('settings')

export function settings({ warnings, file }: LoadedConfig): Finding[] {
  const source = file === undefined ? 'no settings file was found' : `the file among them is ${file}`
  return [ok(`The settings can be used; ${source}.`), ...warnings.map(warningOf)]
}

/** What keeps everything else from being tried. A problem says itself what is allowed. */
export function refusedSettings({ problems, warnings }: ConfigError): Finding[] {
  return [
    ...problems.map((problem): Finding => ({ check: 'settings', status: 'failed', message: sentence(problem) })),
    ...warnings.map(warningOf)
  ]
}

function warningOf(problem: Problem): Finding {
  return warning(sentence(problem), 'Change it, unless it is meant.')
}

function sentence(problem: Problem): string {
  return `${describeProblem(problem).replace(/[.?]$/, '')}.`
}
