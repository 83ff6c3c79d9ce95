import { relative } from 'node:path'
import { type Checked, checkValue } from './check-value.js'
import { demoCallbackUrl, demoOrigin, demoOverrides } from './demo.js'
import { dotEnvFile, type Environment, layerOfEnvironment } from './environment.js'
import { notGiven, type Problem } from './errors.js'
import { exposedFile, publishedFiles, type SecretFile } from './exposed-files.js'
import { type FileLayer, layerOfFile } from './file.js'
import { type Flags, flagName, layerOfFlags } from './flags.js'
import { emptyLayer, type Given, type Layer, layerOfObject } from './layer.js'
import { checkLogo, checkModuleFile, checkPagesFolder } from './named-files.js'
import { checkCertificates, checkRedisKey, redisTlsFindings } from './redis-tls.js'
import { findings } from './rules.js'
import { type Overrides, required, type SettingKey, settingKeys, settingOf, type Values } from './settings.js'
import { checkFolder, findingsInside, ownFolder, STARTER_PAGE } from './wwwroot.js'

/** The sources of settings, in order of precedence. */
export interface Sources {
  readonly flags?: Flags
  /** True for a demo (see the option `demo` of `startServer`). Only flags override the built-in settings of a demo. */
  readonly demo?: boolean
  /** Settings from the program that calls `startServer`. */
  readonly overrides?: Overrides
  /** The environment variables. The default is the environment of the process. */
  readonly env?: Environment
  /** The path of the settings file. By default it is searched for in the working directory. */
  readonly configFile?: string
  /** The working directory. The default is that of the process. */
  readonly cwd?: string
}

/** The settings from all sources, with every problem and warning. */
export interface Resolution {
  readonly values: Values
  /** The source of each value: `flag --port`, `variable PORT`, `file x.yaml`, `default`. */
  readonly origins: Readonly<Record<SettingKey, string>>
  readonly problems: readonly Problem[]
  /** Settings that work but are probably not what the operator meant. */
  readonly warnings: readonly Problem[]
  /** Absolute path of the settings file, if one was read. */
  readonly file: string | undefined
}

/** Reads all sources, checks the settings, and collects the problems. Does not throw for invalid settings. */
export async function resolveSettings(sources: Sources = {}): Promise<Resolution> {
  const { flags = {}, demo = false, overrides, env = process.env, cwd = process.cwd() } = sources
  const file = await layerOfFile(cwd, sources.configFile)
  const layers: readonly Layer[] = [
    await layerOfFlags(flags, cwd),
    demo ? layerOfObject(demoOverrides(), demoOrigin, { nullIsDefault: true }) : emptyLayer,
    overrides ? layerOfObject(overrides, 'this program', { nullIsDefault: true }) : emptyLayer,
    await layerOfEnvironment(env, cwd),
    file
  ]
  const problems: Problem[] = layers.flatMap(layer => layer.problems)
  const warnings: Problem[] = layers.flatMap(layer => layer.warnings)

  const authentication = pick('platform.clientAuthentication', layers).given
  const method = authentication && 'value' in authentication ? authentication.value : undefined
  // An unknown method may be a misspelt private_key_jwt. Then only the method is reported, and not also the missing secret.
  const needsSecret = ['client_secret_basic', 'client_secret_post', undefined].some(name => name === method)
  const values: Partial<Record<SettingKey, unknown>> = {}
  const origins = {} as Record<SettingKey, string>
  const secretFiles = new Map<string, SecretFile>()
  for (const key of settingKeys) {
    const picked = pick(key, layers)
    // A key replaces the client secret, which is then the empty string.
    const fallback = key === 'platform.clientSecret' && !needsSecret ? '' : settingOf(key).default
    const { origin, ...outcome } = await validate(key, picked, cwd, fallback)
    origins[key] = origin
    const path = secretFileOf(key, picked, file) ?? keyFileOf(key, outcome)
    if (path !== undefined && !secretFiles.has(path)) secretFiles.set(path, { key, origin, path })
    if ('value' in outcome) values[key] = outcome.value
    // If the settings file could not be read, it may contain the missing setting. The setting is then not reported.
    else if ('rejected' in outcome) problems.push(...outcome.rejected.map(message => ({ key, origin, message })))
    else if (file.isRead) problems.push({ key, origin, message: missingText(key, outcome.missing) })
  }

  for (const secretFile of secretFiles.values()) warnings.push(...(await exposedFile(secretFile)))
  if (origins['platform.callbackUrl'] === demoOrigin) {
    const callbackUrl = demoCallbackUrl(values as Values)
    values['platform.callbackUrl'] = callbackUrl
    const message =
      'is a host that no browser can open; allowed for a demo: a host name, or an IP address without a zone'
    if (callbackUrl === undefined) problems.push({ key: 'host', origin: origins.host, message })
  }

  const isGiven = (key: SettingKey) => origins[key] !== atDefault
  const crossChecks = [
    ...findings(values as Values, isGiven),
    ...(await redisTlsFindings(values as Values, isGiven)),
    // If wwwroot is invalid, its content cannot be checked.
    ...('wwwroot' in values ? await findingsInside(values as Values) : [])
  ]
  for (const { key, message, isWarning } of crossChecks) {
    const list = isWarning ? warnings : problems
    list.push({ key, origin: origins[key], message })
  }
  if ('wwwroot' in values) {
    const { wwwroot = STARTER_PAGE } = values as Values
    const files = filesOf(layers, file, cwd)
    for (const key of ['extend', 'redisTls.keyFile'] as const) {
      const path = values[key]
      if (typeof path === 'string') files.push({ key, origin: origins[key], path })
    }
    problems.push(...(await publishedFiles(files, wwwroot)))
  }
  return { values: values as Values, origins, problems, warnings, file: file.file }
}

const atDefault = 'default'

interface Picked {
  readonly given: Given | undefined
  /** The source with an empty value, if there is one. */
  readonly emptyAt: string | undefined
}

/** Returns the first value of a setting that is not empty, in the order of the sources. */
function pick(key: SettingKey, layers: readonly Layer[]): Picked {
  const all = layers.flatMap(layer => layer.given.get(key) ?? [])
  return { given: all.find(given => !isEmpty(given)), emptyAt: all.find(isEmpty)?.origin }
}

function isEmpty(given: Given): boolean {
  if (!('value' in given)) return false
  return (
    given.value === undefined || given.value === null || (typeof given.value === 'string' && given.value.trim() === '')
  )
}

/** Returns the file that contains a secret, which is its own file or the settings file. */
function secretFileOf(key: SettingKey, { given }: Picked, { given: inFile, file }: FileLayer): string | undefined {
  if (!given || !settingOf(key).secret) return undefined
  // A script is not a file of secrets, because it may read the secret from another place.
  const isInSettingsFile = inFile.get(key) === given && file !== undefined && !/\.[cm]?js$/.test(file)
  return given.secretFile ?? (isInSettingsFile ? file : undefined)
}

/** Returns the file of the private key for Redis. The value of this setting is a path and no secret. */
function keyFileOf(key: SettingKey, outcome: object): string | undefined {
  return key === 'redisTls.keyFile' && 'value' in outcome && typeof outcome.value === 'string'
    ? outcome.value
    : undefined
}

/** Returns the files from which settings were read. A secret file counts even if another source overrides its setting. */
function filesOf(layers: readonly Layer[], { files }: FileLayer, cwd: string): SecretFile[] {
  const given = layers.flatMap(layer => [...layer.given])
  const secrets = given.flatMap(([key, { origin, secretFile }]) =>
    secretFile === undefined ? [] : [{ key, origin, path: secretFile }]
  )
  const settings = files.map(path => ({ key: relative(cwd, path), origin: 'settings file', path }))
  return [dotEnvFile(cwd), ...settings, ...secrets]
}

/** The settings that are paths. Each path becomes absolute, and its target must exist and be readable. */
const paths: { readonly [Key in SettingKey]?: (given: string, cwd: string) => Promise<Checked> } = {
  wwwroot: checkFolder,
  extend: checkModuleFile,
  'pages.logo': checkLogo,
  'pages.folder': checkPagesFolder,
  'redisTls.caFile': checkCertificates('redisTls.caFile'),
  'redisTls.certFile': checkCertificates('redisTls.certFile'),
  'redisTls.keyFile': checkRedisKey
}

type Validated = { readonly origin: string } & (Checked | { readonly missing: 'empty' | 'absent' })

async function validate(key: SettingKey, { given, emptyAt }: Picked, cwd: string, value: unknown): Promise<Validated> {
  if (emptyAt !== undefined && settingOf(key).rejectsEmpty) {
    return { origin: emptyAt, rejected: [`is empty; allowed: ${settingOf(key).type.allowed}, or remove the setting`] }
  }
  if (given && 'rejected' in given) return { origin: given.origin, rejected: [given.rejected] }
  if (given && 'value' in given) {
    const checked = checkValue(key, given.value)
    const checkPath = paths[key]
    const validated = checkPath && 'value' in checked ? await checkPath(String(checked.value), cwd) : checked
    return { origin: given.origin, ...withFile(validated, key, given.secretFile) }
  }
  if (key === 'wwwroot') return { origin: atDefault, ...(await ownFolder(cwd)) }
  if (value !== required) return { origin: atDefault, value }
  return emptyAt ? { origin: emptyAt, missing: 'empty' } : { origin: notGiven, missing: 'absent' }
}

/** Adds the name of the file to the problems of a value that is the content of a file. */
function withFile(checked: Checked, key: SettingKey, file: string | undefined): Checked {
  if (file === undefined || !('rejected' in checked) || !settingOf(key).type.isFileContent) return checked
  return { rejected: checked.rejected.map(message => `the file ${file} cannot be used: ${message}`) }
}

function missingText(key: SettingKey, missing: 'empty' | 'absent'): string {
  const { env, flag, secret } = settingOf(key)
  const ways = [`the variable ${env}${secret ? ` or ${env}_FILE` : ''}`, flag && `the flag ${flagName(flag)}`]
  const list = ways.filter(way => way !== undefined).join(', ')
  return `${missing === 'empty' ? 'is empty' : 'is required'}; set ${list}, or ${key} in a settings file`
}
