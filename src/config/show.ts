import { defaultText, type SettingKey, settingOf, type Values } from './settings.js'

/** What hides a secret. Its length tells nothing about the secret's. */
const hidden = '********'

/** The value of a setting fit to be shown: secrets hidden, or shown without their password where a type knows how. */
export function shownValue(key: SettingKey, values: Values): unknown {
  const { secret, type } = settingOf(key)
  const value = values[key]
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return value
  if (!secret) return Array.isArray(value) && type.mask ? value.map(type.mask) : value
  return typeof value === 'string' && type.mask ? type.mask(value) : hidden
}

/** The same as text for a person. */
export function shownText(key: SettingKey, values: Values): string {
  const value = shownValue(key, values)
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return `(${defaultText(key)})`
  if (!Array.isArray(value)) return String(value)
  // Items that hold spaces themselves, such as proxy rules, stand on lines of their own.
  return value.join(value.some(item => String(item).includes(' ')) ? '\n' : ' ')
}
