import * as v from 'valibot'
import { withoutUser } from './addresses.js'
import { quote } from './quote.js'
import { type Setting, type SettingKey, settingOf } from './settings.js'

export type Checked = { readonly value: unknown } | { readonly refused: string }

/** Checks one value against the type of its setting. Returns the parsed value, or the reason why the value is refused. */
export function checkValue(key: SettingKey, value: unknown): Checked {
  const setting = settingOf(key)
  // The validation stops at the first failed check, because a later check may rely on it. For example, a check of an
  // address may parse a value that an earlier check has accepted as an address.
  const result = v.safeParse(setting.type.schema(v), value, { abortPipeEarly: true })
  if (result.success) return { value: result.output }
  const [issue] = result.issues
  const reason = issue.type === 'check' || issue.type === 'check_items' ? issue.message : undefined
  return { refused: `${refusalReason(setting, value, reason)}; allowed: ${setting.type.allowed}` }
}

function refusalReason({ secret }: Setting, value: unknown, reason: string | undefined): string {
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
