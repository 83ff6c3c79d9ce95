import type { Problem } from './errors.js'
import type { Given, Layer } from './layer.js'
import { readSecretFile } from './read-file.js'
import { isSettingKey, type SettingKey, settingOf } from './settings.js'
import { readText } from './types.js'

/** The values on the command line. A repeatable flag has a list, and a flag such as `--log-requests` has a boolean. */
export type Flags = { readonly [Key in SettingKey]?: FlagValue }
type FlagValue = string | boolean | readonly string[]

export async function layerOfFlags(flags: Flags, cwd: string): Promise<Layer> {
  const given = new Map<SettingKey, Given>()
  const warnings: Problem[] = []
  for (const [key, value] of Object.entries(flags)) {
    if (!isSettingKey(key) || value === undefined) continue
    const found = await givenByFlag(key, value, cwd)
    given.set(key, found)
    if (showsSecret(key, value)) warnings.push({ key, origin: found.origin, message: exposed(settingOf(key).env) })
  }
  return { given, problems: [], warnings }
}

async function givenByFlag(key: SettingKey, value: FlagValue, cwd: string): Promise<Given> {
  const { flag, type } = settingOf(key)
  const origin = `flag ${flagName(flag ?? key)}`
  if (typeof value === 'boolean') return { origin, value }
  if (typeof value !== 'string') return { origin, value: value.flatMap(text => readText(type, text)) }
  if (namesFile(flag)) {
    const found = await readSecretFile(value, cwd, origin, type)
    // An empty variable counts as not set, but an empty file named by a flag is a mistake.
    return 'value' in found && String(found.value).trim() === ''
      ? { origin, rejected: `the file ${value} is empty` }
      : found
  }
  return { origin, value: readText(type, value.trim()) }
}

/**
 * True if the value of a flag contains a secret, which the process list then shows. This applies only to the address of
 * Redis, which may contain a password.
 */
function showsSecret(key: SettingKey, value: FlagValue): boolean {
  const { secret = false, flag, type } = settingOf(key)
  return secret && !namesFile(flag) && typeof value === 'string' && type.mask?.(value) !== value
}

function exposed(name: string): string {
  return `contains a password that every process on this machine can read; use ${name} or ${name}_FILE instead`
}

/** Returns the name of a declared flag, such as `--port` for `--port <port>`. */
export function flagName(flag: string): string {
  return flag.split(' ', 1).join('')
}

/**
 * True if the value of the flag is the path of a file. Secrets have such flags, because the process list shows all values.
 */
export function namesFile(flag: string | undefined): boolean {
  return flag?.endsWith('-file <file>') ?? false
}
