import { createHash } from 'node:crypto'
import { createExpiringMap } from '../base/expiring-map.js'

export type User = ReturnType<typeof userNamed>

/** The sign-in page has a button for each of these names. It also accepts any other name. */
export const offeredUsers = ['Ada Lovelace', 'Grace Hopper', 'Zaha Hadid', 'Antoni Gaudí', 'Kenzō Tange'] as const

export type Users = ReturnType<typeof createUsers>

const MAX_USERS = 10_000

/** Remembers the users who signed in. If there are too many, those who signed in longest ago are forgotten. */
export function createUsers() {
  const recent = createExpiringMap<User>(MAX_USERS, Date.now)

  return {
    /** Returns the user with this name. The case of the letters does not matter. */
    signIn(name: string) {
      const user = userNamed(name)
      recent.set(user.id, user, Number.POSITIVE_INFINITY)
      return user
    },
    find: recent.get
  }
}

/** Normalizes a typed name: composed letters (NFC), single spaces, no control characters. */
export function tidyName(typed: string): string {
  return typed
    .normalize('NFC')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
}

function userNamed(name: string) {
  const id = idOf(name)
  const [givenName = name, ...others] = name.split(' ')
  const userName = asciiWords(name).join('.') || id.toLowerCase()
  return {
    id,
    name,
    givenName,
    /** Undefined if the name is a single word. */
    familyName: others.join(' ') || undefined,
    userName,
    email: `${userName}@example.com`
  }
}

/** Returns twelve capital letters and digits, like a user id of Autodesk Platform Services. */
function idOf(name: string): string {
  const digest = createHash('sha256').update(name.toLowerCase()).digest('hex').slice(0, 16)
  return BigInt(`0x${digest}`).toString(36).toUpperCase().padStart(12, '0').slice(-12)
}

function asciiWords(name: string): string[] {
  const withoutAccents = name.normalize('NFKD').replace(/\p{M}/gu, '')
  return withoutAccents.toLowerCase().match(/[a-z0-9]+/g) ?? []
}
