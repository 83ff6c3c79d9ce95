/** Display names from user info or an ID token: always a string of bounded length, never "undefined undefined". */
import type { UserInfo } from '../idp/client.js'

const LONGEST = 1000

/** The first value that is a name, or an empty string. */
export function firstName(...values: readonly unknown[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim().slice(0, LONGEST)
  }
  return ''
}

/** What people are called where no name is given: the user name, then the e-mail address, then the subject identifier. */
export function fallbackNames({ preferred_username, userName, email, sub }: UserInfo): readonly unknown[] {
  return [preferred_username, userName, email, sub]
}

/** Given and family name with one space between them, from either generation of the platform's user info. */
export function fullName({ firstName: first, lastName: last, given_name, family_name }: UserInfo): string {
  return [firstName(first, given_name), firstName(last, family_name)].filter(Boolean).join(' ')
}
