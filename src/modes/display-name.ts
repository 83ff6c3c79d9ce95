/** Derives display names from user info or an ID token. A name is always a string of limited length. */
import type { UserInfo } from '../idp/client.js'

const MAX_LENGTH = 1000

/** Returns the first value that is a name, or an empty string. */
export function firstName(...values: readonly unknown[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim().slice(0, MAX_LENGTH)
  }
  return ''
}

/** Returns values that can replace a missing name, the best one first. */
export function fallbackNames({ preferred_username, userName, email, sub }: UserInfo): readonly unknown[] {
  return [preferred_username, userName, email, sub]
}

/** Returns the given and family name, from the old or the new format of the platform's user info. */
export function fullName({ firstName: first, lastName: last, given_name, family_name }: UserInfo): string {
  return [firstName(first, given_name), firstName(last, family_name)].filter(Boolean).join(' ')
}
