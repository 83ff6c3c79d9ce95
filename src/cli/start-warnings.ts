import type { LoadedConfig } from '../config/load.js'
import type { SettingKey } from '../config/settings.js'
import { callback } from './check/callback.js'
import type { Finding } from './check/finding.js'
import { wwwroot } from './check/wwwroot.js'

export interface StartWarning {
  /** The setting, or the file or variable that looks like one. */
  readonly setting: string
  readonly origin: string
  readonly message: string
}

/** The warnings of a start: those of the settings, and the findings of `check` that need no network. */
export async function startWarnings({ config, origins, warnings }: LoadedConfig): Promise<StartWarning[]> {
  const about = (setting: SettingKey) => (finding: Finding) => warningOf(setting, origins[setting], finding)
  // A program that asks for any free port knows that the callback URL cannot name it.
  const ofCallback = config.port === 0 ? [] : callback(config)
  return [
    ...warnings.map(({ key, origin, message }) => ({ setting: key, origin, message: `${key} ${message}` })),
    ...ofCallback.flatMap(about('platform.callbackUrl')),
    ...(await wwwroot(config)).flatMap(about('wwwroot'))
  ]
}

function warningOf(setting: SettingKey, origin: string, { status, message, next }: Finding): StartWarning[] {
  return status === 'ok' ? [] : [{ setting, origin, message: `${message} ${next}` }]
}
