import { isSecurity, type Row } from '../types/setting.js'
import { readString } from '../types/value-type.js'
import { type Environment, readDotEnv } from './dot-env.js'
import { createNames, type Variable } from './known-names.js'
import { type Given, isEmpty, type Layer, type SettingsFinding } from './layer.js'
import { readSecretFile } from './secret-file.js'

// Node or a package reads these variables, but not from `.env`.
const READ_FROM_PROCESS =
  /^(NODE_(OPTIONS|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|USE_\w+)|SSL_CERT_(FILE|DIR)|OTEL_\w+|(HTTPS?|ALL|NO)_PROXY)$/i

/**
 * Reads the settings from the variables of the process and from a `.env` file in the working directory. A variable of the
 * process overrides the same variable in `.env`.
 */
export async function layerOfEnvironment(env: Environment, rows: readonly Row[], cwd: string): Promise<Layer> {
  const dotEnv = await readDotEnv(cwd)
  const variablesOf = (values: Environment, place: Variable['place']) =>
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : { name, value, place }))
  const all = [...variablesOf(dotEnv.fromDotEnv, ' in .env'), ...variablesOf(env, '')]
  const variables = new Map<string, Variable>(all.map(variable => [variable.name, variable]))

  const given = new Map<string, Given>()
  const names = createNames(rows)
  const odd = [...[...variables.values()].map(names.ofVariable), ...dotEnv.otherLines.map(names.ofLine)]
  const findings: SettingsFinding[] = [...dotEnv.problems, ...odd.filter(finding => finding !== undefined)]
  const warn = (key: string, source: string, message: string) =>
    void findings.push({ key, source, message, isWarning: true })
  for (const { name, value, place } of variables.values()) {
    if (place !== '' && READ_FROM_PROCESS.test(name))
      warn(name, `variable${place}`, 'has no effect there. Set it in the environment of the process.')
    const row = names.rowOf(name)
    if (!row || place === '' || !dotEnv.isReadDifferently(name) || !isSecurity(row)) continue
    const message = `is read as ${value.length} characters, but Docker, Compose or systemd would read this line differently. Write the value in single quotation marks, without white space after them.`
    warn(row.key, `variable ${name}${place}`, message)
  }
  for (const row of rows) {
    const { key, env: name, tutorialEnv } = row
    const found = await givenByVariable(row, name, variables, cwd)
    const fallback =
      tutorialEnv && (!found || isEmpty(found)) && (await givenByVariable(row, tutorialEnv, variables, cwd))
    if (fallback && !isEmpty(fallback)) {
      given.set(key, fallback)
      warn(key, fallback.source, `is used because ${name} is not set. Rename the variable to ${name}.`)
    } else if (found) given.set(key, found)
  }
  return { given, findings }
}

async function givenByVariable(
  { secret, severalLines, type, default: fallback }: Row,
  name: string,
  variables: ReadonlyMap<string, Variable>,
  cwd: string
): Promise<Given | undefined> {
  const direct = variables.get(name)
  const file = secret ? variables.get(`${name}_FILE`) : undefined
  const variable = file?.value ? file : direct
  if (!variable) return undefined
  const source = `variable ${variable.name}${variable.place}`
  if (direct?.value && file?.value) {
    const message = `is also set by the variable ${direct.name}${direct.place}. Remove one of the two variables.`
    return { source, rejected: [message] }
  }
  const value = variable.value.trim()
  // A value in `.env` without a closing quotation mark also contains the following lines and their secrets. If such a value were
  // accepted as a list of scopes, the server would send these secrets to the provider.
  if (/[\r\n]/.test(value) && variable.place !== '' && !(severalLines && variable === direct)) {
    const allowed = variable === file ? 'the path of a file' : type.allowed
    const message = `has more than one line, perhaps because a closing quotation mark is missing. Set it to ${allowed}.`
    return { source, rejected: [message] }
  }
  if (variable === file) {
    // If an empty file for the client key or the Redis URL were accepted, the server would run without the key or
    // without Redis. The file with the previous session secrets may be empty, and an empty file for a required secret
    // is reported as a missing setting.
    return readSecretFile(variable.value, { cwd, source, type, mayBeEmpty: fallback !== undefined })
  }
  // An empty string counts as not set, also for a setting whose strings are converted to lists.
  if (value === '') return { source, value }
  return { source, value: secret ? variable.value : readString(type, value) }
}
