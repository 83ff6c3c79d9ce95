/** Selects a display name from user info or an ID token. The result is always a string with a limited length. */
import type { UserInfo } from '../provider/client.js'

const MAX_LENGTH = 1000

/** Returns the first value that is a string and not blank. Returns an empty string if there is none. */
export function firstName(...values: readonly unknown[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim().slice(0, MAX_LENGTH)
  }
  return ''
}

/** Returns values that can replace a missing name, in the order of preference. */
export function fallbackNames({ preferred_username, userName, email, sub }: UserInfo): readonly unknown[] {
  return [preferred_username, userName, email, sub]
}

/** Returns the given name and the family name. Some providers call them `firstName` and `lastName`. */
export function fullName({ firstName: first, lastName: last, given_name, family_name }: UserInfo): string {
  return [firstName(first, given_name), firstName(last, family_name)].filter(Boolean).join(' ')
}
