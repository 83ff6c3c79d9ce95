/**
 * Collects the settings, checks them, and returns the configuration of the server. The folder, from bottom to top:
 * - `types/`: what a value may be, what a row of the table contains, and what messages may show
 * - `sources/`: the flags, the settings of an application, the environment with `.env`, and the settings file
 * - `table.ts`: all settings. `settings.ts`: the types and names that follow from the table. `yaml-text.ts` writes a settings file
 * - `check-value.ts`, `cross-checks.ts`: the checks of one value, and of several. They use `private-files.ts` and `wwwroot.ts`
 * - `demo.ts`: the settings of a demo. `site.ts`: the URLs and cookie names that follow from the settings
 * - `outbound-proxy.ts`: the HTTP proxy for calls to other servers
 */
import { relative } from 'node:path'
import { checkValueAndPath, doubtsAbout } from './check-value.js'
import { findings } from './cross-checks.js'
import { demoDefaults, demoIgnores, demoOverrides, demoSource, finishDemo } from './demo.js'
import { exposedFile } from './private-files.js'
import {
  type Config,
  type Flags,
  fieldOf,
  flagName,
  groups,
  required,
  rows,
  type SettingKey,
  type Settings,
  settingIn,
  settingKeys,
  settingOf,
  type Values
} from './settings.js'
import { dotEnvFile, type Environment } from './sources/dot-env.js'
import { layerOfEnvironment } from './sources/environment.js'
import { layerOfFlags } from './sources/flags.js'
import { emptyLayer, type Given, isEmpty, type Layer, type PrivateFile, type SettingsFinding } from './sources/layer.js'
import { layerOfObject } from './sources/nested-settings.js'
import { type FileLayer, layerOfFile } from './sources/settings-file.js'
import { ConfigError, type ConfigProblem, notGiven } from './types/problem.js'
import { containsSecret, type KnownSettings, type Row } from './types/setting.js'
import type { Checked } from './types/value-type.js'

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
  const isMissing = (path: string) => settingIn(config, path) === undefined
  const missingGroups = groups.filter(isMissing)
  const isNamed = (key: SettingKey) => missingGroups.some(group => key.startsWith(`${group}.`))
  const missing = [...missingGroups, ...withValue.filter(key => !isNamed(key) && isMissing(fieldOf(key)))]
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
  readonly privateFiles: readonly PrivateFile[]
}

/** Reads all sources, checks the settings, and collects the problems. Does not throw for invalid settings. */
export async function resolveSettings(inputs: LoadConfigOptions = {}): Promise<Resolution> {
  const { flags = {}, demo = false, settings, env = process.env, cwd = process.cwd() } = inputs
  const file = await layerOfFile(cwd, rows, inputs.configFile)
  const ofObject = (object: Settings | undefined, source: string) =>
    object === undefined ? emptyLayer : layerOfObject(object, source, rows, { nullIsDefault: true })
  const overridable: readonly Layer[] = [
    ofObject(settings, applicationSource),
    env === false ? emptyLayer : await layerOfEnvironment(env, rows, cwd),
    file
  ]
  const layers: readonly Layer[] = [
    await layerOfFlags(flags, rows, cwd),
    ofObject(demo ? demoOverrides() : undefined, demoSource),
    ...overridable,
    ofObject(demo ? demoDefaults : undefined, demoSource)
  ]
  const found: SettingsFinding[] = layers.flatMap(layer => layer.findings)

  const values: Partial<Record<SettingKey, unknown>> = {}
  const outcomes = new Map<SettingKey, Outcome>()
  const picked = rows.map(row => ({ row, ...pick(row, layers) }))
  const isGiven = (key: string) => picked.some(({ row, given }) => row.key === key && isSet(given))
  const known = { value: (key: string) => values[key as SettingKey], isGiven, cwd }
  // The defaults come last, because they may depend on other settings.
  for (const one of [...picked.filter(({ given }) => isSet(given)), ...picked.filter(({ given }) => !isSet(given))]) {
    const outcome = isSet(one.given) ? await checkGiven(one.row, one.given, cwd) : await defaultOf(one, known)
    outcomes.set(one.row.key, outcome)
    if ('value' in outcome) values[one.row.key] = outcome.value
  }
  const sources = Object.fromEntries([...outcomes].map(([key, { source }]) => [key, source])) as Resolution['sources']
  const secretFiles = new Map<string, PrivateFile>()
  for (const { row, given } of picked) {
    const { key } = row
    const source = sources[key]
    const outcome = outcomes.get(key)
    // If the settings file could not be read, it may contain the missing setting, so the setting is not reported.
    const isReported = outcome && 'rejected' in outcome && (given || file.isRead)
    if (isReported) found.push(...outcome.rejected.map(message => ({ key, source, message })))
    const doubts = given && 'value' in given ? doubtsAbout(row, given.value) : []
    found.push(...doubts.map(message => ({ key, source, message, isWarning: true }) as const))
    const path = secretFileOf(row, given, file)
    if (path !== undefined && !secretFiles.has(path)) secretFiles.set(path, { key, source, path })
  }

  const named = rows.flatMap(({ key, privateFile }) => {
    const path = values[key]
    return privateFile && typeof path === 'string' ? [{ key, source: sources[key], path, privateFile }] : []
  })
  const exposable = [...secretFiles.values(), ...named.filter(({ privateFile }) => privateFile === 'secret')]
  for (const secretFile of [...(env === false ? [] : [dotEnvFile(cwd)]), ...exposable])
    found.push(...(await exposedFile(secretFile)))

  const ignored = overridable
    .flatMap(({ given }) => given.get(demoIgnores) ?? [])
    .find(one => isSet(one) && !isEmpty(one))
  const ofDemo = demo ? finishDemo(values as Values, sources, ignored) : { values: values as Values, findings: [] }
  const privateFiles = [...filesOf(layers, file, cwd), ...named]
  const isSetSomewhere = (key: SettingKey) => sources[key] !== atDefault
  found.push(...ofDemo.findings)
  for await (const finding of findings(ofDemo.values, isSetSomewhere, privateFiles))
    found.push({ source: sources[finding.key as SettingKey], ...finding })
  const problems = found.filter(({ isWarning }) => !isWarning)
  const warnings = found.flatMap(({ isWarning, ...warning }) => (isWarning ? [warning] : []))
  return { values: ofDemo.values, sources, problems, warnings, file: file.file, privateFiles }
}

const atDefault = 'default'

type Outcome = { readonly source: string } & Checked

interface Picked {
  readonly row: (typeof rows)[number]
  readonly given: Given | undefined
  /** The first source with an empty value, if there is one. */
  readonly emptyAt: string | undefined
}

function isSet(given: Given | undefined): given is Exclude<Given, { useDefault: true }> {
  return given !== undefined && !('useDefault' in given)
}

/** Returns the setting from the first source in which the setting is not empty. */
function pick({ key, keepsEmpty, rejectsEmpty, type }: Row, layers: readonly Layer[]): Omit<Picked, 'row'> {
  const all = layers.flatMap(layer => layer.given.get(key) ?? [])
  const isUnset = (given: Given) => isEmpty(given) && !(keepsEmpty && 'value' in given && given.value === '')
  const emptyAt = all.find(isUnset)?.source
  if (emptyAt === undefined || !rejectsEmpty) return { given: all.find(given => !isUnset(given)), emptyAt }
  const rejected = [`is empty. Set it to ${type.allowed}, or remove the setting.`]
  return { given: { source: emptyAt, rejected }, emptyAt }
}

async function checkGiven(
  row: Picked['row'],
  given: { source: string; secretFile?: string } & Checked,
  cwd: string
): Promise<Outcome> {
  if ('rejected' in given) return given
  return { source: given.source, ...(await checkValueAndPath(row.key, given.value, cwd, given.secretFile)) }
}

async function defaultOf({ row, emptyAt }: Picked, known: KnownSettings): Promise<Outcome> {
  const value = row.defaultFrom ? await row.defaultFrom(known) : row.default
  if (value === required) return { source: emptyAt ?? notGiven, rejected: [missingMessage(row, emptyAt !== undefined)] }
  const isPath = row.type.whyUnusable && value !== undefined
  return { source: atDefault, ...(isPath ? await checkValueAndPath(row.key, value, known.cwd) : { value }) }
}

/** Returns the file that contains a secret, which is a separate file or the settings file. */
function secretFileOf(row: Row, given: Given | undefined, { given: inFile, file }: FileLayer): string | undefined {
  if (!given || !containsSecret(row, 'value' in given ? given.value : undefined)) return undefined
  // A JavaScript settings file does not count as a secret file, because it may read the secret from elsewhere.
  const isInSettingsFile = inFile.get(row.key) === given && file !== undefined && !/\.[cm]?js$/.test(file)
  return given.secretFile ?? (isInSettingsFile ? file : undefined)
}

/**
 * Returns the files from which settings were read, including a secret file whose setting is overridden by a different
 * source.
 */
function filesOf(layers: readonly Layer[], { file }: FileLayer, cwd: string): PrivateFile[] {
  const given = layers.flatMap(layer => [...layer.given])
  const secrets = given.flatMap(([key, { source, secretFile }]) =>
    secretFile === undefined ? [] : [{ key, source, path: secretFile }]
  )
  const settings = file === undefined ? [] : [{ key: relative(cwd, file), source: 'settings file', path: file }]
  return [dotEnvFile(cwd), ...settings, ...secrets]
}

function missingMessage({ key, env, flag, secret }: Row, isEmpty: boolean): string {
  const ways = [`the variable ${env}${secret ? ` or ${env}_FILE` : ''}`, flag && `the flag ${flagName(flag)}`]
  const list = ways.filter(way => way !== undefined).join(', ')
  return `${isEmpty ? 'is empty' : 'is required'}. Set ${list}, or ${key} in a settings file.`
}
