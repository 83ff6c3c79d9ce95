/** Finds users by their names: an e-mail address, a user name or a display name. Upper and lower case do not matter. */
import type { Hasher } from '../../cookie/keyring.js'
import type { Identity } from '../../cookie/session-record.js'
import type { Rule, Values } from '../cells.js'
import { cellName } from './user-lists.js'

const MAX_USERS_OF_NAME = 100

export interface UserNamesDependencies {
  /** For each name, the `sub` of every user with this name. The user who was added last comes last. */
  readonly names: Values<readonly string[]>
  readonly hasher: Hasher
}

export function createUserNames({ names, hasher }: UserNamesDependencies) {
  return {
    /** Stores the names in these claims in the background. A name that cannot be stored now is not stored. */
    add(identity: Identity | undefined, claims: Readonly<Record<string, unknown>>): void {
      if (!identity) return
      const { iss, sub } = identity
      const add: Rule<readonly string[], void> = (subs = []) => {
        const cell = [...subs.filter(other => other !== sub), sub].slice(-MAX_USERS_OF_NAME)
        return { result: undefined, cell }
      }
      const emails = typeof claims.email === 'string' ? [nameOfUser('email', iss, claims.email)] : []
      const cells = [...emails, ...namesIn(claims).map(name => nameOfUser('name', iss, name))]
      for (const cell of cells) names.change(hasher.newest(cell), add).catch(() => {})
    }
  }
}

/** Returns the name of the cell that lists the users with this name. */
export function nameOfUser(kind: 'name' | 'email', iss: string, value: string): string {
  return cellName(kind, iss, normalized(value))
}

/** Returns the names by which an operator may know the user. Several users can have the same name. */
function namesIn(claims: Readonly<Record<string, unknown>>): readonly string[] {
  const { email, preferred_username, userName, name, given_name, firstName, family_name, lastName } = claims
  const fullName = `${firstName ?? given_name ?? ''} ${lastName ?? family_name ?? ''}`
  const found = [email, preferred_username, userName, name, fullName].filter(value => typeof value === 'string')
  return [...new Set(found.map(normalized))].filter(value => value !== '')
}

function normalized(name: string): string {
  return name.normalize('NFC').trim().toLowerCase()
}
