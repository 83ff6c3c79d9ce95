import { defaultText, type SettingKey, settingOf, type Values, writtenValue } from './settings.js'

/** The replacement for a secret. Its length does not depend on the secret. */
const hidden = '********'

/** Returns the value for display. A secret is hidden, or loses only its password if its type has a `mask`. */
export function shownValue(key: SettingKey, values: Values): unknown {
  const { secret, type } = settingOf(key)
  const value = writtenValue(key, values[key])
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return value
  if (!secret) return value
  return typeof value === 'string' && type.mask ? type.mask(value) : hidden
}

/** Returns the value as text for a person. */
export function shownText(key: SettingKey, values: Values): string {
  const value = shownValue(key, values)
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return `(${defaultText(key)})`
  if (!Array.isArray(value)) return String(value)
  // Items that contain spaces, such as proxy rules, are written on separate lines.
  return value.join(value.some(item => String(item).includes(' ')) ? '\n' : ' ')
}
