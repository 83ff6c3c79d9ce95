/** What a source of settings gives: the flags, an application, the environment with `.env`, or the settings file. */
import type { ConfigProblem } from '../types/problem.js'
import type { Checked } from '../types/value-type.js'

/** The unchecked settings of one source. */
export interface Layer {
  /** The settings by key. */
  readonly given: ReadonlyMap<string, Given>
  readonly findings: readonly SettingsFinding[]
}

/** A problem, or a warning about a setting that works. */
export interface SettingsFinding extends ConfigProblem {
  readonly isWarning?: true
}

/** One setting in a source. It has a value, the reasons why its value is rejected, or a request for the default. */
export type Given = {
  readonly source: string
  /** The absolute path of the file, for a secret that has a separate file. */
  readonly secretFile?: string
} & (Checked | { readonly useDefault: true })

/** A file that must not be public, with the setting and the source that refer to it. */
export interface PrivateFile extends Pick<ConfigProblem, 'key' | 'source'> {
  readonly path: string
}

export const emptyLayer: Layer = { given: new Map(), findings: [] }

/**
 * True if a setting counts as not set. An empty variable counts as not set, because compose files and CI systems set a
 * variable without a value to ''.
 */
export function isEmpty(given: Given): boolean {
  if (!('value' in given)) return false
  const { value } = given
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
}
