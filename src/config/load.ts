import { relative } from 'node:path'
import { type Checked, checkValueAndPath, defaultFolder } from './check-value.js'
import { findings, loginScopesOf } from './cross-checks.js'
import { demoCallbackUrl, demoDefaults, demoOverrides, demoSource } from './demo.js'
import { dotEnvFile, type Environment } from './dot-env.js'
import { ConfigError, type ConfigProblem, notGiven } from './errors.js'
import { exposedFile, publishedFiles, type SecretFile } from './files.js'
import { oddities } from './odd-values.js'
import {
  type Config,
  fieldOf,
  flagName,
  groups,
  required,
  type SettingKey,
  type Settings,
  STARTER_PAGE,
  settingIn,
  settingKeys,
  settingOf,
  type Values
} from './settings.js'
import { type FileLayer, layerOfFile } from './settings-file.js'
import {
  containsSecret,
  emptyLayer,
  type Flags,
  type Given,
  isEmpty,
  type Layer,
  layerOfEnvironment,
  layerOfFlags,
  layerOfObject
} from './sources.js'

/** The sources of settings, in order of precedence. */
export interface LoadConfigOptions {
  readonly flags?: Flags
  /** True for a demo (see the `demo` option of `startServer`). Only flags override the built-in settings of a demo. */
  readonly demo?: boolean
  /** Settings from the application that calls `startServer`. */
  readonly settings?: Settings
  /**
   * The environment variables. The default is the environment of the process. With `false`, neither variables nor the file
   * `.env` in the working directory are read.
   */
  readonly env?: Environment | false
  /** The path of the settings file. By default, the server looks for a settings file in the working directory. */
  readonly configFile?: string
  /** The working directory. The default is the working directory of the process. */
  readonly cwd?: string
}

export interface LoadedConfig extends Pick<Resolution, 'sources' | 'warnings' | 'file'> {
  readonly config: Config
}

/**
 * Collects the settings and checks them. The sources, in order of precedence, are the flags, the built-in settings of a
 * demo, the application that calls this function, the environment, `.env` and a settings file.
 * @throws {ConfigError} listing every problem
 * @example const { config, warnings } = await loadConfig({ cwd: '/srv', env: process.env })
 */
export async function loadConfig(inputs: LoadConfigOptions = {}): Promise<LoadedConfig> {
  const { values, problems, warnings, sources, file, privateFiles } = await resolveSettings(inputs)
  if (problems.length > 0) throw new ConfigError(problems, warnings)
  return { config: { ...configOf(values), privateFiles }, sources, warnings, file }
}

/** Puts the values into their groups. The caller must have checked that no required value is missing. */
export function configOf(values: Values): Config {
  const config: Record<string, unknown> = {}
  for (const key of settingKeys.filter(key => key in values)) {
    const [name = '', member] = fieldOf(key).split('.')
    config[name] =
      member === undefined ? values[key] : { ...(config[name] as object | undefined), [member]: values[key] }
  }
  return config as Config
}

/**
 * Checks that an application passes a complete configuration. The author of a JavaScript application may have written the
 * configuration by hand.
 * @throws {ConfigError} listing the missing groups and settings
 */
export function requireComplete(config: Config): void {
  const withValue = settingKeys.filter(key => settingOf(key).default !== undefined)
  const missing = groups.filter(group => settingIn(config, group) === undefined)
  const isMissing = (key: SettingKey) => settingIn(config, fieldOf(key)) === undefined
  missing.push(...withValue.filter(key => isMissing(key) && !missing.some(group => key.startsWith(`${group}.`))))
  const message = 'is missing. Pass the config that loadConfig returns.'
  if (missing.length > 0) throw new ConfigError(missing.map(key => ({ key, source: applicationSource, message })))
}

const applicationSource = 'your application'

/** The settings from all sources, with every problem and warning. */
export interface Resolution {
  readonly values: Values
  /** The source of each value: `flag --port`, `variable PORT`, `file x.yaml`, `default`. */
  readonly sources: Readonly<Record<SettingKey, string>>
  readonly problems: readonly ConfigProblem[]
  /** Settings that work but are probably not what the operator meant. */
  readonly warnings: readonly ConfigProblem[]
  /** Absolute path of the settings file, if one was read. */
  readonly file: string | undefined
  /** The files that must not be inside wwwroot. */
  readonly privateFiles: readonly SecretFile[]
}

/** Reads all sources, checks the settings, and collects the problems. Does not throw for invalid settings. */
export async function resolveSettings(inputs: LoadConfigOptions = {}): Promise<Resolution> {
  const { flags = {}, demo = false, settings, env = process.env, cwd = process.cwd() } = inputs
  const file = await layerOfFile(cwd, inputs.configFile)
  const overridable: readonly Layer[] = [
    settings ? layerOfObject(settings, applicationSource, { nullIsDefault: true }) : emptyLayer,
    env === false ? emptyLayer : await layerOfEnvironment(env, cwd),
    file
  ]
  const layers: readonly Layer[] = [
    await layerOfFlags(flags, cwd),
    demo ? layerOfObject(demoOverrides(), demoSource, { nullIsDefault: true }) : emptyLayer,
    ...overridable,
    demo ? layerOfObject(demoDefaults, demoSource) : emptyLayer
  ]
  const problems: ConfigProblem[] = layers.flatMap(layer => layer.problems)
  const warnings: ConfigProblem[] = layers.flatMap(layer => layer.warnings)

  const hasKey = isSet(pick('platform.clientKey', layers).given)
  const authMethod = pick('platform.clientAuthMethod', layers).given
  const method = authMethod && 'value' in authMethod ? authMethod.value : hasKey ? 'private_key_jwt' : undefined
  // An unknown method may be a misspelt private_key_jwt, which needs no secret. So only the method is reported, and the
  // missing secret is not.
  const needsSecret = ['client_secret_basic', 'client_secret_post', undefined].some(name => name === method)
  function defaultOf(key: SettingKey): unknown {
    // A client that authenticates with a private key needs no client secret.
    if (key === 'platform.clientSecret' && !needsSecret) return ''
    if (key === 'platform.clientAuthMethod' && hasKey) return 'private_key_jwt'
    return settingOf(key).default
  }
  const values: Partial<Record<SettingKey, unknown>> = {}
  const sources = {} as Record<SettingKey, string>
  const secretFiles = new Map<string, SecretFile>()
  for (const key of settingKeys) {
    const picked = pick(key, layers)
    const fallback = defaultOf(key)
    const { source, ...outcome } = await validate(key, picked, cwd, fallback)
    sources[key] = source
    const { given } = picked
    const isInFile = file.given.get(key) === given
    if (given && 'value' in given)
      warnings.push(...oddities(key, given.value, { isInFile }).map(message => ({ key, source, message })))
    const path = secretFileOf(key, picked, file)
    if (path !== undefined && !secretFiles.has(path)) secretFiles.set(path, { key, source, path })
    const isMissing = !picked.given && fallback === required
    if ('value' in outcome) values[key] = outcome.value
    // If the settings file could not be read, it may contain the missing setting, so the setting is not reported.
    else if (file.isRead || !isMissing) problems.push(...outcome.rejected.map(message => ({ key, source, message })))
  }

  if (demo && sources['apiProxy.rules'] === atDefault) {
    const { given } = pick('apiProxy.rules', overridable)
    const message = 'is not used in a demo, because its targets would reject the tokens of the demo. Use --api-proxy.'
    if (given && isSet(given) && !isEmpty(given))
      warnings.push({ key: 'apiProxy.rules', source: given.source, message })
  }
  if (sources['platform.backchannelLogout'] === atDefault) {
    const { 'platform.issuer': issuer } = values as Values
    const { scopes = [] } = loginScopesOf(values as Values)
    values['platform.backchannelLogout'] = issuer !== undefined && scopes.includes('openid')
  }
  const filesNamedBy = (...keys: readonly SettingKey[]) =>
    keys.flatMap(key => {
      const path = values[key]
      return typeof path === 'string' ? [{ key, source: sources[key], path }] : []
    })
  // The private key for Redis is a secret too, although the value of its setting is only a path.
  for (const secretFile of [...secretFiles.values(), ...filesNamedBy('redis.keyFile')])
    warnings.push(...(await exposedFile(secretFile)))
  if (sources['platform.callbackUrl'] === demoSource) {
    const callbackUrl = demoCallbackUrl(values as Values)
    values['platform.callbackUrl'] = callbackUrl
    const message = 'is a host that no browser can open. For a demo, use a host name, or an IP address without a zone.'
    if (callbackUrl === undefined) problems.push({ key: 'host', source: sources.host, message })
  }

  for (const { key, message, isWarning } of await findings(values as Values, key => sources[key] !== atDefault)) {
    const list = isWarning ? warnings : problems
    list.push({ key, source: sources[key], message })
  }
  const privateFiles = [...filesOf(layers, file, cwd), ...filesNamedBy('extension', 'redis.keyFile')]
  // If wwwroot is invalid, there is no folder in which to look for these files.
  if ('wwwroot' in values) {
    const { wwwroot = STARTER_PAGE } = values as Values
    problems.push(...(await publishedFiles(privateFiles, wwwroot)))
  }
  return { values: values as Values, sources, problems, warnings, file: file.file, privateFiles }
}

const atDefault = 'default'

interface Picked {
  readonly given: Given | undefined
  /** The first source with an empty value, if there is one. */
  readonly emptyAt: string | undefined
}

function isSet(given: Given | undefined): boolean {
  return given !== undefined && !('useDefault' in given)
}

/** Returns the setting from the first source in which the setting is not empty. */
function pick(key: SettingKey, layers: readonly Layer[]): Picked {
  const all = layers.flatMap(layer => layer.given.get(key) ?? [])
  const isUnset = (given: Given) =>
    isEmpty(given) && !(settingOf(key).keepsEmpty && 'value' in given && given.value === '')
  return { given: all.find(given => !isUnset(given)), emptyAt: all.find(isUnset)?.source }
}

/** Returns the file that contains a secret, which is a separate file or the settings file. */
function secretFileOf(key: SettingKey, { given }: Picked, { given: inFile, file }: FileLayer): string | undefined {
  if (!given || !containsSecret(key, 'value' in given ? given.value : undefined)) return undefined
  // A JavaScript settings file does not count as a secret file, because it may read the secret from elsewhere.
  const isInSettingsFile = inFile.get(key) === given && file !== undefined && !/\.[cm]?js$/.test(file)
  return given.secretFile ?? (isInSettingsFile ? file : undefined)
}

/**
 * Returns the files from which settings were read, including a secret file whose setting is overridden by a different
 * source.
 */
function filesOf(layers: readonly Layer[], { file }: FileLayer, cwd: string): SecretFile[] {
  const given = layers.flatMap(layer => [...layer.given])
  const secrets = given.flatMap(([key, { source, secretFile }]) =>
    secretFile === undefined ? [] : [{ key, source, path: secretFile }]
  )
  const settings = file === undefined ? [] : [{ key: relative(cwd, file), source: 'settings file', path: file }]
  return [dotEnvFile(cwd), ...settings, ...secrets]
}

type Validated = { readonly source: string } & Checked

async function validate(key: SettingKey, { given, emptyAt }: Picked, cwd: string, value: unknown): Promise<Validated> {
  if (emptyAt !== undefined && settingOf(key).rejectsEmpty) {
    return { source: emptyAt, rejected: [`is empty. Set it to ${settingOf(key).type.allowed}, or remove the setting.`] }
  }
  if (given && 'rejected' in given) return given
  if (given && 'value' in given) {
    return { source: given.source, ...(await checkValueAndPath(key, given.value, cwd, given.secretFile)) }
  }
  // The default of wwwroot depends on the working directory, so the settings table does not contain it.
  if (key === 'wwwroot') return { source: atDefault, ...(await defaultFolder(cwd)) }
  if (value !== required) return { source: atDefault, value }
  return { source: emptyAt ?? notGiven, rejected: [missingMessage(key, emptyAt !== undefined)] }
}

function missingMessage(key: SettingKey, isEmpty: boolean): string {
  const { env, flag, secret } = settingOf(key)
  const ways = [`the variable ${env}${secret ? ` or ${env}_FILE` : ''}`, flag && `the flag ${flagName(flag)}`]
  const list = ways.filter(way => way !== undefined).join(', ')
  return `${isEmpty ? 'is empty' : 'is required'}. Set ${list}, or ${key} in a settings file.`
}
