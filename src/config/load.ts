import { ConfigError } from './errors.js'
import { type Resolution, resolveSettings, type Sources } from './resolve.js'
import type { Config, Values } from './settings.js'

export interface LoadedConfig extends Pick<Resolution, 'origins' | 'warnings' | 'file'> {
  readonly config: Config
}

/**
 * Collects the settings and checks them. In order of precedence, they come from the flags, from the built-in settings of a
 * demo, from the program that calls this function, from the environment, from `.env` and from a settings file.
 * @throws {ConfigError} listing every problem
 * @example const { config, warnings } = await loadConfig({ cwd: '/srv', env: process.env })
 */
export async function loadConfig(sources: Sources = {}): Promise<LoadedConfig> {
  const resolution = await resolveSettings(sources)
  const { values, problems, warnings, origins, file } = resolution
  if (problems.length > 0) throw new ConfigError(problems, warnings)
  return { config: configOf(values), origins, warnings, file }
}

/** Puts the values into their groups. The caller must have checked that no required value is missing. */
export function configOf(values: Values): Config {
  const config: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(values)) {
    const [group, member] = key.split('.')
    if (group === undefined || member === undefined) config[key] = value
    else config[group] = { ...(config[group] as object | undefined), [member]: value }
  }
  return config as Config
}
