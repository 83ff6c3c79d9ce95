import { ConfigError, type Problem } from './errors.js'
import { resolveSettings, type Sources } from './resolve.js'
import type { Config, SettingKey, Values } from './settings.js'

export interface LoadedConfig {
  readonly config: Config
  /** Where each value came from: `flag --port`, `variable PORT`, `file x.yaml`, `default`. */
  readonly origins: Readonly<Record<SettingKey, string>>
  /** What works, but probably not as meant. */
  readonly warnings: readonly Problem[]
  /** Absolute path of the settings file, if one was read. */
  readonly file: string | undefined
}

/**
 * Collects the settings (a program's own ones, the environment, `.env` and a settings file, in this order), checks
 * them, and throws one `ConfigError` with everything that is wrong.
 */
export async function loadConfig(sources: Sources = {}): Promise<LoadedConfig> {
  const resolution = await resolveSettings(sources)
  const { values, problems, warnings, origins, file } = resolution
  if (problems.length > 0) throw new ConfigError(problems, warnings)
  return { config: configOf(values), origins, warnings, file }
}

/** Puts the values into their groups. The caller makes sure that no required value is missing. */
export function configOf(values: Values): Config {
  const config: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(values)) {
    const [group, member] = key.split('.')
    if (group === undefined || member === undefined) config[key] = value
    else config[group] = { ...(config[group] as object | undefined), [member]: value }
  }
  return config as Config
}
