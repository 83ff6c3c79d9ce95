import type { LoadedConfig } from '../config/load.js'
import type { SettingKey } from '../config/settings.js'
import { callback } from './check/callback-and-port.js'
import type { Finding } from './check/report.js'
import { wwwroot } from './check/settings.js'

interface StartWarning {
  /** The setting, or a file or variable whose name resembles a setting. */
  readonly setting: string
  readonly origin: string
  readonly message: string
}

/** Returns the warnings about the settings, and the warnings and failures of the checks `callback` and `wwwroot`. */
export async function startWarnings({ config, origins, warnings }: LoadedConfig): Promise<StartWarning[]> {
  const warningsOf = (setting: SettingKey) => (finding: Finding) => toWarnings(setting, origins[setting], finding)
  // With port 0, the system chooses the port, so the operator cannot write it into the callback URL. A warning would
  // not help.
  const callbackFindings = config.port === 0 ? [] : callback(config)
  return [
    ...warnings.map(({ key, origin, message }) => ({ setting: key, origin, message: `${key} ${message}` })),
    ...callbackFindings.flatMap(warningsOf('platform.callbackUrl')),
    ...(await wwwroot(config)).flatMap(warningsOf('wwwroot'))
  ]
}

function toWarnings(setting: SettingKey, origin: string, { status, message, next }: Finding): StartWarning[] {
  return status === 'ok' ? [] : [{ setting, origin, message: `${message} ${next}` }]
}
