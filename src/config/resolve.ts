import { type Checked, checkValue } from './check-value.js'
import { demoCallbackUrl, demoOrigin, demoOverrides } from './demo.js'
import { type Environment, layerOfEnvironment } from './environment.js'
import { notGiven, type Problem } from './errors.js'
import { exposedFile, type SecretFile } from './exposed-files.js'
import { type FileLayer, layerOfFile } from './file.js'
import { type Flags, flagName, layerOfFlags } from './flags.js'
import { emptyLayer, type Given, type Layer, layerOfObject } from './layer.js'
import { checkModuleFile } from './module-file.js'
import { findings } from './rules.js'
import { type Overrides, required, type SettingKey, settingKeys, settingOf, type Values } from './settings.js'
import { checkFolder, findingsInside, ownFolder } from './wwwroot.js'

/** Where settings are taken from, strongest first; what is not given is that of the process. */
export interface Sources {
  readonly flags?: Flags
  /** Settings that a program gives. */
  readonly overrides?: Overrides
  /** The settings of a demo: nothing has to be given, and only flags outrank them. See `startServer`'s `demo`. */
  readonly demo?: boolean
  readonly env?: Environment
  /** Exactly this file; otherwise one is looked for in the working directory. */
  readonly configFile?: string
  readonly cwd?: string
}

/** The outcome of looking everywhere, problems and all. */
export interface Resolution {
  readonly values: Values
  /** Where each value came from. */
  readonly origins: Readonly<Record<SettingKey, string>>
  readonly problems: readonly Problem[]
  readonly warnings: readonly Problem[]
  /** Absolute path of the settings file, if one was read. */
  readonly file: string | undefined
}

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

  const values: Partial<Record<SettingKey, unknown>> = {}
  const origins = {} as Record<SettingKey, string>
  const secretFiles = new Map<string, SecretFile>()
  for (const key of settingKeys) {
    const picked = pick(key, layers)
    const { origin, ...outcome } = await settle(key, picked, cwd)
    origins[key] = origin
    const path = secretFileOf(key, picked, file)
    if (path !== undefined && !secretFiles.has(path)) secretFiles.set(path, { key, origin, path })
    if ('value' in outcome) values[key] = outcome.value
    // A file that could not be read may well have held what now seems to be missing.
    else if ('refused' in outcome || file.isRead) problems.push({ key, origin, message: sayWhy(key, outcome) })
  }

  for (const secretFile of secretFiles.values()) warnings.push(...(await exposedFile(secretFile)))
  if (origins['platform.callbackUrl'] === demoOrigin) {
    const callbackUrl = demoCallbackUrl(values as Values)
    values['platform.callbackUrl'] = callbackUrl
    const message = 'is a host that no browser can open; allowed for a demo: a host name or an IP address without zone'
    if (callbackUrl === undefined) problems.push({ key: 'host', origin: origins.host, message })
  }

  const together = [
    ...findings(values as Values, key => origins[key] !== atDefault),
    // Without a usable folder there is nothing to look into.
    ...('wwwroot' in values ? await findingsInside(values as Values) : [])
  ]
  for (const { key, message, isWarning } of together) {
    const list = isWarning ? warnings : problems
    list.push({ key, origin: origins[key], message })
  }
  return { values: values as Values, origins, problems, warnings, file: file.file }
}

const atDefault = 'default'

interface Picked {
  readonly given: Given | undefined
  /** Where it was given, but empty. */
  readonly emptyAt: string | undefined
}

/** What the strongest source says that says anything. */
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

/** The file that a secret was read from: one of its own, or the settings file. */
function secretFileOf(key: SettingKey, { given }: Picked, { given: inFile, file }: FileLayer): string | undefined {
  if (!given || !settingOf(key).secret) return undefined
  // A script need not contain the secret that it exports.
  const isWrittenDown = inFile.get(key) === given && file !== undefined && !/\.[cm]?js$/.test(file)
  return given.secretFile ?? (isWrittenDown ? file : undefined)
}

/** Settings that are paths. They become absolute, and must lead to something that can be read. */
const paths: { readonly [Key in SettingKey]?: (given: string, cwd: string) => Promise<Checked> } = {
  wwwroot: checkFolder,
  extend: checkModuleFile
}

type Settled = { readonly origin: string } & (Checked | { readonly missing: 'empty' | 'absent' })

async function settle(key: SettingKey, { given, emptyAt }: Picked, cwd: string): Promise<Settled> {
  if (emptyAt !== undefined && settingOf(key).refusesEmpty) {
    return { origin: emptyAt, refused: `is empty; allowed: ${settingOf(key).type.allowed}, or leave the setting out` }
  }
  if (given && 'refused' in given) return given
  if (given && 'value' in given) {
    const checked = checkValue(key, given.value)
    const checkPath = paths[key]
    const settled = checkPath && 'value' in checked ? await checkPath(String(checked.value), cwd) : checked
    return { origin: given.origin, ...settled }
  }
  if (key === 'wwwroot') return { origin: atDefault, ...(await ownFolder(cwd)) }
  const value = settingOf(key).default
  if (value !== required) return { origin: atDefault, value }
  return emptyAt ? { origin: emptyAt, missing: 'empty' } : { origin: notGiven, missing: 'absent' }
}

function sayWhy(key: SettingKey, why: { refused: string } | { missing: 'empty' | 'absent' }): string {
  if ('refused' in why) return why.refused
  const { env, flag, secret } = settingOf(key)
  const ways = [`the variable ${env}${secret ? ` or ${env}_FILE` : ''}`, flag && `the flag ${flagName(flag)}`]
  const list = ways.filter(way => way !== undefined).join(', ')
  return `${why.missing === 'empty' ? 'is empty' : 'is required'}; give ${list}, or ${key} in a settings file`
}
