// Loads the settings that a deployment file gives to the server, as the server does, and runs the commands in its introduction.
import { spawnSync } from 'node:child_process'
import type { ExecutionContext } from 'ava'
import { type LoadedConfig, loadConfig } from '#src/config/load.js'
import { newKey, pemOf } from '../helpers/client-keys.js'
import { tempFolder } from '../helpers/temp-folder.js'

/** The client secret, which an operator types when a command asks for it. */
export const typedSecret = 'gH5tR2wQ8zXc7VbN'

const secrets: Readonly<Record<string, string>> = {
  SERVER_SESSION_SECRET_FILE: 'aVq7Zx81Qw7Lp3Vn5Rt9cTb4YhUj2MnBv\n',
  SERVER_SESSION_PREVIOUS_SECRETS_FILE: '',
  PLATFORM_CLIENT_SECRET_FILE: `${typedSecret}\n`,
  PLATFORM_CLIENT_KEY_FILE: pemOf(newKey('ES256')),
  REDIS_URL_FILE: 'redis://:p4sNq8Wv2Zt7@redis:6379\n'
}

/**
 * Replaces the file of each `_FILE` variable with a temporary file that contains a secret.
 * @param more the content of further files, which can be other secrets
 */
export async function settingsFrom(
  t: Pick<ExecutionContext, 'teardown'>,
  variables: Readonly<Record<string, string>>,
  more: Readonly<Record<string, string>> = {}
): Promise<LoadedConfig> {
  const cwd = await tempFolder(t, { ...secrets, ...more })
  const env = Object.entries(variables).map(([name, value]) => [name, name.endsWith('_FILE') ? name : value])
  return loadConfig({ env: Object.fromEntries(env), cwd })
}

/** Returns the paths in the `_FILE` variables. */
export function secretFiles(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).flatMap(([name, value]) => (name.endsWith('_FILE') ? [value] : []))
}

/** Runs the commands of an introduction in this folder, as an operator would. Returns their output. */
export function runCommands(t: ExecutionContext, script: string, cwd: string): string {
  const options = { cwd, input: `${typedSecret}\n`, encoding: 'utf8' } as const
  const { status, stdout, stderr } = spawnSync('bash', ['-e', '-c', script], options)
  t.is(status, 0, stderr)
  return stdout
}
