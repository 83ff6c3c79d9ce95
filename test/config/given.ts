import type { ExecutionContext } from 'ava'
import type { LoadConfigOptions } from '#src/config/load.js'
import { type LoadedConfig, loadConfig } from '#src/config/load.js'
import { ConfigError, type ConfigProblem, describeProblem } from '#src/config/types/problem.js'
import { carries } from '../helpers/messages.js'
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

/**
 * Asserts that these are the problems. Each is described by its key and by words of its source and its message, such as
 * `port PORT "x" 65535`.
 */
export function areProblems(t: ExecutionContext, problems: Problems = [], expected: readonly string[]): void {
  t.deepEqual(
    keysOf(problems),
    expected.map(words => words.split(' ', 1).join())
  )
  for (const [index, problem] of problems.entries()) carries(t, describeProblem(problem), expected[index] ?? '')
}

/** Asserts that the settings are refused with these problems. */
export async function refuses(t: ExecutionContext, situation: Situation, ...problems: readonly string[]) {
  areProblems(t, await problemsOf(t, situation), problems)
}

/** Asserts that the settings are accepted with these warnings, and returns the loaded settings. */
export async function accepts(t: ExecutionContext, situation: Situation, ...warnings: readonly string[]) {
  const loaded = await load(t, situation)
  areProblems(t, loaded.warnings, warnings)
  return loaded
}
