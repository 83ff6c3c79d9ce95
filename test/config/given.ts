import type { ExecutionContext } from 'ava'
import { ConfigError, type ConfigProblem } from '#src/config/errors.js'
import type { LoadConfigOptions } from '#src/config/load.js'
import { type LoadedConfig, loadConfig } from '#src/config/load.js'
import { tempFolder } from '../helpers/temp-folder.js'

export const sessionSecret = 'wG4vT9qLx2ZbN7rKp5YcJ8sHd3MfA6eU'
export const clientSecret = 'Rk81mZqPw0'

/** The required settings, as variables. */
export const enough = {
  SERVER_SESSION_SECRET: sessionSecret,
  PLATFORM_CLIENT_ID: 'client',
  PLATFORM_CLIENT_SECRET: clientSecret,
  PLATFORM_CALLBACK_URL: 'http://localhost:8080/api/auth/callback',
  // Without an access list, there is a warning.
  PLATFORM_AUTH_ACCESS_ALLOW: '*'
}

export interface Situation extends Omit<LoadConfigOptions, 'cwd'> {
  /** Files in the working directory. */
  readonly files?: Readonly<Record<string, string | Buffer>>
}

/** Loads the settings in a new working directory and without the environment of this process. */
export async function load(t: ExecutionContext, { files, env, ...sources }: Situation = {}): Promise<LoadedConfig> {
  return loadConfig({ ...sources, env: { ...enough, ...env }, cwd: await tempFolder(t, files) })
}

/** Returns the problems of settings that are refused. */
export async function problemsOf(t: ExecutionContext, situation: Situation): Promise<readonly ConfigProblem[]> {
  const error = await t.throwsAsync(load(t, situation), { instanceOf: ConfigError })
  return error?.problems ?? []
}

type Problems = readonly ConfigProblem[] | undefined

export function keysOf(problems: Problems = []): string[] {
  return problems.map(({ key }) => key)
}

export function keysAndSourcesOf(problems: Problems = []): string[] {
  return problems.map(({ key, source }) => `${key} (${source})`)
}

export function linesOf(problems: Problems = []): string[] {
  return problems.map(({ key, message }) => `${key} ${message}`)
}
