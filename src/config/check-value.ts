import { withoutUser } from './addresses.js'
import { quote } from './errors.js'
import { type Setting, type SettingKey, settingOf } from './settings.js'

/** `rejected` has one sentence for each problem. */
export type Checked = { readonly value: unknown } | { readonly rejected: readonly string[] }

/** Checks one value against the type of its setting. Returns the parsed value, or the problems for which it is rejected. */
export function checkValue(key: SettingKey, value: unknown): Checked {
  const setting = settingOf(key)
  const { allowed, parse } = setting.type
  const parsed = parse(value)
  if ('value' in parsed) return parsed
  return { rejected: parsed.problems ?? [`${rejectionReason(setting, value, parsed.reason)}; allowed: ${allowed}`] }
}

function rejectionReason({ secret }: Setting, value: unknown, reason: string | undefined): string {
  if (secret) return reason ?? `found ${typeName(value)}`
  return `found ${describe(value)}${reason ? `, but ${reason}` : ''}`
}

function describe(value: unknown): string {
  if (typeof value === 'string') return `the text ${quote(withoutUser(value))}`
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value) && value.every(item => typeof item === 'string')) return `the list ${quote(value.join(' '))}`
  return typeName(value)
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a mapping'
  if (typeof value === 'string') return 'a text'
  return `a ${typeof value}`
}
