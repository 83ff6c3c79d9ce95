import { join } from 'node:path'
import { parseEnv } from 'node:util'
import type { Problem } from './errors.js'
import { exposedFile } from './exposed-files.js'
import type { Given, Layer } from './layer.js'
import { nearest } from './nearest.js'
import { errorCode, readSecretFile, readTextFile, whyUnreadable } from './read-file.js'
import { type SettingKey, settingKeys, settingOf } from './settings.js'

export type Environment = Readonly<Record<string, string | undefined>>

interface Variable {
  readonly name: string
  readonly text: string
  readonly origin: string
  readonly isInDotEnv: boolean
}

/**
 * The settings among the variables of the process and of a `.env` file in the working directory, which fills gaps
 * only.
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

  const dotEnvFile = { key: '.env', origin: 'working directory', path: join(cwd, '.env') }
  const given = new Map<SettingKey, Given>()
  const unknown = unknownVariables([...variables.values()])
  const warnings: Problem[] = [...(await exposedFile(dotEnvFile)), ...unknown.filter(({ key }) => !mustBeKnown(key))]
  for (const key of settingKeys) {
    const { env: name, tutorialEnv } = settingOf(key)
    const found = await givenByVariable(key, name, variables, cwd)
    if (found && !isBlank(found)) given.set(key, found)
    else {
      const fallback = tutorialEnv && (await givenByVariable(key, tutorialEnv, variables, cwd))
      if (fallback && !isBlank(fallback)) {
        given.set(key, fallback)
        warnings.push({ key, origin: fallback.origin, message: `is taken for want of ${name}; give it that name` })
      } else if (found) given.set(key, found)
    }
  }
  return { given, problems: [...problems, ...unknown.filter(({ key }) => mustBeKnown(key))], warnings }
}

async function givenByVariable(
  key: SettingKey,
  name: string,
  variables: ReadonlyMap<string, Variable>,
  cwd: string
): Promise<Given | undefined> {
  const { secret, type } = settingOf(key)
  const direct = variables.get(name)
  const file = secret ? variables.get(`${name}_FILE`) : undefined
  if (direct?.text && file?.text) {
    return { origin: direct.origin, refused: `is given beside ${file.name} (${file.origin}); keep one of the two` }
  }
  const variable = file?.text ? file : direct
  if (!variable) return undefined
  const { origin } = variable
  const text = variable.text.trim()
  if (/[\r\n]/.test(text) && variable.isInDotEnv && !severalLinesAllowed.has(variable.name)) {
    return { origin, refused: `${severalLines}; allowed: ${variable === file ? 'the name of a file' : type.allowed}` }
  }
  if (variable === file) return readSecretFile(variable.text, cwd, origin)
  return { origin, value: secret ? variable.text : type.fromText(text) }
}

// Where a quotation mark is left open, the next variables become part of this one, and with them the secrets. A list of
// scopes would take them for scopes and show them to the provider.
const severalLines = 'holds more than one line, as if a quotation mark was left open'
const severalLinesAllowed = new Set(
  (['session.previousSecrets', 'proxy.routes'] as const).map(key => settingOf(key).env)
)

/** An empty variable counts as not given: compose files and CI systems set those for what they do not know. */
function isBlank(given: Given): boolean {
  return 'value' in given && typeof given.value === 'string' && given.value.trim() === ''
}

async function readDotEnv(cwd: string): Promise<{ fromDotEnv: Environment; problems: Problem[] }> {
  try {
    const text = await readTextFile(join(cwd, '.env'))
    // parseEnv drops a carriage return; where it alone ends the lines, all of them would be the value of the first.
    return { fromDotEnv: parseEnv(text.replace(/\r\n?/g, '\n')), problems: [] }
  } catch (error) {
    // A folder of that name is somebody's Python environment.
    if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes(errorCode(error) ?? '')) return { fromDotEnv: {}, problems: [] }
    const problem = { key: '.env', origin: 'working directory', message: `cannot be read: ${whyUnreadable(error)}` }
    return { fromDotEnv: {}, problems: [problem] }
  }
}

const ourPrefix = /^(PLATFORM|SERVER_SESSION|INTERNAL_TOKEN|PUBLIC_TOKEN)_/

// Kubernetes puts such variables into every container for a service that is called "platform" or "platform-auth".
const serviceLink = /_(SERVICE_(HOST|PORT\w*)|PORT_\d+_(TCP|UDP|SCTP)\w*)$/
const serviceAddress = /^(tcp|udp|sctp):\/\//

const knownVariables = settingKeys.flatMap(key => {
  const { env, tutorialEnv, secret } = settingOf(key)
  const names = tutorialEnv ? [env, tutorialEnv] : [env]
  return secret ? names.flatMap(name => [name, `${name}_FILE`]) : names
})

/** A slip in the name of the access list would let everybody in. */
function mustBeKnown(name: string): boolean {
  return name.startsWith('PLATFORM_AUTH_ACCESS')
}

function unknownVariables(variables: readonly Variable[]): Problem[] {
  const known = new Set(knownVariables)
  return variables
    .filter(
      ({ name, text }) =>
        ourPrefix.test(name) && !known.has(name) && !serviceLink.test(name) && !serviceAddress.test(text)
    )
    .map(unknownVariable)
}

/** What people mix up is less the name than which prefix goes before it, or that none does. */
function withoutPrefix(name: string): string {
  return name.replace(/^(PLATFORM_AUTH|PLATFORM|SERVER)_/, '')
}

function unknownVariable({ name, origin, isInDotEnv }: Variable): Problem {
  // `NAME: value=` in a .env makes all before the last character the name, the secret too.
  const word = name.split(/\W/, 1).join('')
  if (isInDotEnv && word !== name)
    return { key: word, origin: origin.replace(name, word), message: 'must be followed by = at once' }
  const guess = nearest(withoutPrefix(name), knownVariables, known => [withoutPrefix(known)])
  return { key: name, origin, message: `is no setting of this server${guess ? `; did you mean ${guess}?` : ''}` }
}
