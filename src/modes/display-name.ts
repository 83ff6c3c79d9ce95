/** Names out of user info: never "undefined undefined", never anything but a bounded string. */
import type { UserInfo } from '../idp/client.js'

const LONGEST = 1000

/** The first value that is a name, or an empty string. */
export function firstName(...values: readonly unknown[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value.trim() !== '') return value.trim().slice(0, LONGEST)
  }
  return ''
}

/** Given and family name with one space between them, from either generation of the platform's user info. */
export function fullName({ firstName: first, lastName: last, given_name, family_name }: UserInfo): string {
  return [firstName(first, given_name), firstName(last, family_name)].filter(Boolean).join(' ')
}
