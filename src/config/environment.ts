import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { errorCode } from '../support/error-code.js'
import type { Problem } from './errors.js'
import { exposedFile, type SecretFile } from './exposed-files.js'
import type { Given, Layer } from './layer.js'
import { readSecretFile, readTextFile, whyUnreadable } from './read-file.js'
import { type SettingKey, settingKeys, settingOf } from './settings.js'
import { readText } from './types.js'
import { unknownVariables, type Variable } from './unknown-variables.js'

export type Environment = Readonly<Record<string, string | undefined>>

/** Returns the `.env` file of the working directory, which may be missing. */
export function dotEnvFile(cwd: string): SecretFile {
  return { key: '.env', origin: 'working directory', path: join(cwd, '.env') }
}

/**
 * Reads the settings from the variables of the process and from a `.env` file in the working directory. A variable of the
 * process overrides the same variable in `.env`.
 */
export async function layerOfEnvironment(env: Environment, cwd: string): Promise<Layer> {
  const { fromDotEnv, problems } = await readDotEnv(cwd)
  const variables = new Map<string, Variable>()
  const add = (source: Environment, isInDotEnv: boolean) => {
    for (const [name, text] of Object.entries(source)) {
      const origin = `variable ${name}${isInDotEnv ? ' in .env' : ''}`
      if (text !== undefined) variables.set(name, { name, text, origin, isInDotEnv })
    }
  }
  add(fromDotEnv, true)
  add(env, false)

  const given = new Map<SettingKey, Given>()
  const unknown = unknownVariables([...variables.values()])
  const warnings: Problem[] = [...(await exposedFile(dotEnvFile(cwd))), ...unknown.warnings]
  for (const key of settingKeys) {
    const { env: name, tutorialEnv } = settingOf(key)
    const found = await givenByVariable(key, name, variables, cwd)
    if (found && !isBlank(found)) given.set(key, found)
    else {
      const fallback = tutorialEnv && (await givenByVariable(key, tutorialEnv, variables, cwd))
      if (fallback && !isBlank(fallback)) {
        given.set(key, fallback)
        warnings.push({
          key,
          origin: fallback.origin,
          message: `is used because ${name} is not set; rename it to ${name}`
        })
      } else if (found) given.set(key, found)
    }
  }
  return { given, problems: [...problems, ...unknown.problems], warnings }
}

async function givenByVariable(
  key: SettingKey,
  name: string,
  variables: ReadonlyMap<string, Variable>,
  cwd: string
): Promise<Given | undefined> {
  const { secret, type, default: fallback } = settingOf(key)
  const direct = variables.get(name)
  const file = secret ? variables.get(`${name}_FILE`) : undefined
  if (direct?.text && file?.text) {
    return {
      origin: direct.origin,
      rejected: `is set together with ${file.name} (${file.origin}); remove one of the two`
    }
  }
  const variable = file?.text ? file : direct
  if (!variable) return undefined
  const { origin } = variable
  const text = variable.text.trim()
  if (/[\r\n]/.test(text) && variable.isInDotEnv && !severalLinesAllowed.has(variable.name)) {
    return { origin, rejected: `${severalLines}; allowed: ${variable === file ? 'the name of a file' : type.allowed}` }
  }
  if (variable === file) {
    const found = await readSecretFile(variable.text, cwd, origin, type)
    // Without an error, the server would run without the key or without Redis. The file of earlier secrets may be empty, and an
    // empty file of a required secret is reported as a missing setting.
    return isBlank(found) && fallback === undefined
      ? { origin, rejected: `the file ${variable.text} is empty; allowed: ${type.allowed}` }
      : found
  }
  return { origin, value: secret ? variable.text : readText(type, text) }
}

// A value in `.env` without a closing quotation mark also contains the following lines and their secrets. If such a value
// were accepted as a list of scopes, the server would send these secrets to the provider.
const severalLines = 'has more than one line, perhaps because a closing quotation mark is missing'
const severalLinesAllowed = new Set(
  (['session.previousSecrets', 'proxy.routes', 'platform.clientKey'] as const).map(key => settingOf(key).env)
)

/** An empty variable counts as not set, because compose files and CI systems set a variable without a value to ''. */
function isBlank(given: Given): boolean {
  return 'value' in given && typeof given.value === 'string' && given.value.trim() === ''
}

async function readDotEnv(cwd: string): Promise<{ fromDotEnv: Environment; problems: Problem[] }> {
  try {
    const text = await readTextFile(dotEnvFile(cwd).path)
    // For parseEnv, only a line feed ends a line. If all lines ended in carriage returns, the first variable would contain
    // all other variables.
    return { fromDotEnv: parseEnv(text.replace(/\r\n?/g, '\n')), problems: [] }
  } catch (error) {
    // A folder with the name `.env` is often a Python environment, so it is ignored.
    if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes(errorCode(error) ?? '')) return { fromDotEnv: {}, problems: [] }
    const problem = { key: '.env', origin: 'working directory', message: `cannot be read: ${whyUnreadable(error)}` }
    return { fromDotEnv: {}, problems: [problem] }
  }
}
