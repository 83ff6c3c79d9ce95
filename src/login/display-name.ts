/** Parts of the display name of a user, from the claims that providers send. */
import type { UserInfo } from '../provider/id-token.js'

const MAX_NAME_LENGTH = 1000

/**
 * Returns the first value that is a string and not blank, trimmed and shortened to the maximum length. Returns an empty string if
 * there is no such value.
 */
export function firstName(...values: readonly unknown[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim().slice(0, MAX_NAME_LENGTH)
  }
  return ''
}

/** Returns values that can replace a missing name, in the order of preference. */
export function fallbackNames(userInfo: UserInfo): readonly unknown[] {
  // Microsoft Graph, Spotify, Discord and GitHub use names of their own.
  const { displayName, display_name, global_name, preferred_username, userName, login, email, mail, sub } = userInfo
  return [displayName, display_name, global_name, preferred_username, userName, login, email, mail, sub]
}

/** Returns the given name and the family name. Some providers call them `firstName` and `lastName`. */
export function fullName({ firstName: first, lastName: last, given_name, family_name }: UserInfo): string {
  return [firstName(first, given_name), firstName(last, family_name)].filter(Boolean).join(' ')
}
