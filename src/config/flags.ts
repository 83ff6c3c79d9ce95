import type { Problem } from './errors.js'
import type { Given, Layer } from './layer.js'
import { readSecretFile } from './read-file.js'
import { isSettingKey, type SettingKey, settingOf } from './settings.js'

/** Values as the command line gave them: text, a list for a flag that may be repeated, or yes and no for one without a value. */
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
  if (typeof value !== 'string') return { origin, value: value.flatMap(text => type.fromText(text)) }
  if (namesFile(flag)) {
    const found = await readSecretFile(value, cwd, origin)
    // An empty variable counts as not given, but whoever writes a flag means it.
    return 'value' in found && String(found.value).trim() === ''
      ? { origin, refused: `the file ${value} is empty` }
      : found
  }
  return { origin, value: type.fromText(value.trim()) }
}

/** The one secret that is also a flag, because most often it holds none: the address of Redis. */
function showsSecret(key: SettingKey, value: FlagValue): boolean {
  const { secret = false, flag, type } = settingOf(key)
  return secret && !namesFile(flag) && typeof value === 'string' && type.mask?.(value) !== value
}

function exposed(name: string): string {
  return `holds a password that every process on this machine can read; give it by ${name} or ${name}_FILE`
}

/** `--port` of `--port <port>`. */
export function flagName(flag: string): string {
  return flag.split(' ', 1).join('')
}

/** A secret on the command line would be in the process list for all to see, so its flag names a file. */
export function namesFile(flag: string | undefined): boolean {
  return flag?.endsWith('-file <file>') ?? false
}
