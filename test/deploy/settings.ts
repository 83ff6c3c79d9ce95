// The settings that a deployment file gives to the server, read as the server reads them.
import type { ExecutionContext } from 'ava'
import { type LoadedConfig, loadConfig } from '#src/config/load.js'
import { tempFolder } from '../helpers/temp-folder.js'

const secrets: Readonly<Record<string, string>> = {
  SERVER_SESSION_SECRET_FILE: 'aVq7Zx81Qw7Lp3Vn5Rt9cTb4YhUj2MnBv\n',
  SERVER_SESSION_PREVIOUS_SECRETS_FILE: '',
  PLATFORM_CLIENT_SECRET_FILE: 'gH5tR2wQ8zXc7VbN\n',
  REDIS_URL_FILE: 'redis://:p4sNq8Wv2Zt7@redis:6379\n'
}

/** Each variable that names a file finds one of the same name with a secret in it. */
export async function settingsFrom(
  t: Pick<ExecutionContext, 'teardown'>,
  variables: Readonly<Record<string, string>>
): Promise<LoadedConfig> {
  const cwd = await tempFolder(t, secrets)
  const env = Object.entries(variables).map(([name, value]) => [name, name.endsWith('_FILE') ? name : value])
  return loadConfig({ env: Object.fromEntries(env), cwd })
}

/** The paths of the files that the variables name. */
export function secretFiles(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).flatMap(([name, value]) => (name.endsWith('_FILE') ? [value] : []))
}
