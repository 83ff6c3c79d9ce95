import { containsSecret, flagName, namesFile, type Row } from '../types/setting.js'
import { readString } from '../types/value-type.js'
import type { Given, Layer, SettingsFinding } from './layer.js'
import { readSecretFile } from './secret-file.js'

type FlagValue = string | boolean | readonly string[]

/** Reads the settings from the flags, which are given by the keys of their settings. */
export async function layerOfFlags(
  flags: Readonly<Record<string, FlagValue | undefined>>,
  rows: readonly Row[],
  cwd: string
): Promise<Layer> {
  const given = new Map<string, Given>()
  const findings: SettingsFinding[] = []
  for (const row of rows) {
    const value = flags[row.key]
    if (value === undefined) continue
    const found = await givenByFlag(row, value, cwd)
    given.set(row.key, found)
    // The process list shows the values of flags.
    if (namesFile(row.flag) || !containsSecret(row, value)) continue
    const message = `contains a password that every process on this machine can read. Use the variable ${row.env} or ${row.env}_FILE instead.`
    findings.push({ key: row.key, source: found.source, message, isWarning: true })
  }
  return { given, findings }
}

async function givenByFlag({ key, flag, type }: Row, value: FlagValue, cwd: string): Promise<Given> {
  const source = `flag ${flagName(flag ?? key)}`
  if (typeof value === 'boolean') return { source, value }
  if (typeof value !== 'string') return { source, value: value.flatMap(string => readString(type, string)) }
  if (!namesFile(flag)) return { source, value: readString(type, value.trim()) }
  // An empty variable counts as not set, but an empty file named by a flag is a mistake.
  return readSecretFile(value, { cwd, source, type, mayBeEmpty: false })
}
